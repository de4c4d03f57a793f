import ipaddr from 'ipaddr.js'

/**
 * Returns whether a name or address means this machine only: `localhost`, 127.0.0.0/8 or ::1.
 * Only the usual notation counts, not `127.1` or `0x7f000001`.
 */
export function isLoopback(host: string): boolean {
  if (host.toLowerCase() === 'localhost') return true
  const isUsual = ipaddr.IPv4.isValidFourPartDecimal(host) || ipaddr.IPv6.isValid(host)
  return isUsual && ipaddr.process(host).range() === 'loopback'
}
