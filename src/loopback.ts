import ipaddr from 'ipaddr.js'

/**
 * Returns whether a host is `localhost` or a loopback address (127.0.0.0/8 or ::1). Returns false for unusual notations
 * such as `127.1` and `0x7f000001`.
 */
export function isLoopback(host: string): boolean {
  if (host.toLowerCase() === 'localhost') return true
  const isUsual = ipaddr.IPv4.isValidFourPartDecimal(host) || ipaddr.IPv6.isValid(host)
  return isUsual && ipaddr.process(host).range() === 'loopback'
}
