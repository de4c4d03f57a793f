import ipaddr from 'ipaddr.js'

/** The network of every loopback address. */
const LOOPBACK_NETWORK = 'loopback'

/**
 * Returns the network of a client: the /24 of an IPv4 address, or the /48 of an IPv6 address. Providers give whole /48
 * networks to single customers, so addresses in one /48 can belong to one attacker. All loopback addresses are one
 * network.
 * @param client an address, or a result of `clientKey`, such as `192.0.2.7` or `2001:db8:0:1::/64`
 */
export function findNetwork(client: string): string {
  const address = ipaddr.process(client.replace(/\/\d+$/, ''))
  if (address.kind() === 'ipv4') {
    if (address.range() === 'loopback') return LOOPBACK_NETWORK
    return `${(address as ipaddr.IPv4).octets.slice(0, 3).join('.')}.0/24`
  }
  const { parts } = address as ipaddr.IPv6
  // `clientKey` cuts the loopback address ::1 to ::/64. No other client has an address in this network.
  if (parts.slice(0, 7).every(part => part === 0)) return LOOPBACK_NETWORK
  return `${parts
    .slice(0, 3)
    .map(part => part.toString(16))
    .join(':')}::/48`
}
