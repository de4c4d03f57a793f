import ipaddr from 'ipaddr.js'

/**
 * The IPv6 networks whose addresses contain an IPv4 address. `bits` is the length of the prefix. The IPv4 address
 * follows the prefix.
 */
const NETWORKS_WITH_IPV4 = [
  { name: 'IPv4-mapped', network: ipaddr.IPv6.parse('::ffff:0:0'), bits: 96 },
  { name: 'NAT64 (RFC 6052)', network: ipaddr.IPv6.parse('64:ff9b::'), bits: 96 },
  { name: '6to4 (RFC 3056)', network: ipaddr.IPv6.parse('2002::'), bits: 16 },
]

/** Parses an address. Returns the IPv4 address if an IPv6 address contains one. @throws if the text is no address */
export function parseAddress(text: string): ipaddr.IPv4 | ipaddr.IPv6 {
  const address = ipaddr.parse(text)
  if (address.kind() === 'ipv4') return address
  const bytes = address.toByteArray()
  const found = NETWORKS_WITH_IPV4.find(({ network, bits }) => (address as ipaddr.IPv6).match(network, bits))
  return found ? new ipaddr.IPv4(bytes.slice(found.bits / 8, found.bits / 8 + 4)) : address
}

/**
 * Removes the port that some proxies add, as in `192.0.2.1:5000` and `[2001:db8::1]:443`. Returns any other text
 * unchanged.
 */
export function removePort(text: string): string {
  const [, bracketed, plain] = /^(?:\[([^\]]*)\](?::\d+)?|([\d.]+):\d+)$/.exec(text) ?? []
  return bracketed ?? plain ?? text
}

/**
 * Returns whether a range contains more addresses than one organization usually has: more than a /8 for IPv4, or more
 * than a /16 for IPv6. An IPv6 range can contain IPv4 addresses. The limit for IPv4 then applies to these addresses.
 * @param bits the length of the prefix
 */
export function isWiderThanOneOrganization(text: string, bits: number): boolean {
  const address = ipaddr.parse(text)
  if (address.kind() === 'ipv4') return bits < 8
  const inner = NETWORKS_WITH_IPV4.find(network => (address as ipaddr.IPv6).match(network.network, network.bits))
  return bits < 16 || (inner !== undefined && bits < inner.bits + 8)
}
