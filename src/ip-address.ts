import ipaddr from 'ipaddr.js'

/**
 * The IPv6 networks whose addresses contain the IPv4 address of a client. `bits` is the length of the prefix, and `at`
 * is the first byte of the IPv4 address.
 */
const NETWORKS_WITH_IPV4 = [
  { name: 'IPv4-mapped', network: ipaddr.IPv6.parse('::ffff:0:0'), bits: 96, at: 12 },
  { name: 'IPv4-translated (RFC 2765)', network: ipaddr.IPv6.parse('::ffff:0:0:0'), bits: 96, at: 12 },
  { name: 'NAT64 (RFC 6052)', network: ipaddr.IPv6.parse('64:ff9b::'), bits: 96, at: 12 },
  // The operator may choose a longer prefix here. We support the usual length, /96.
  { name: 'local NAT64 (RFC 8215)', network: ipaddr.IPv6.parse('64:ff9b:1::'), bits: 48, at: 12 },
  { name: '6to4 (RFC 3056)', network: ipaddr.IPv6.parse('2002::'), bits: 16, at: 2 },
  // The bits of the client's address are inverted. The bytes before it are the address of a server, which the client
  // can choose.
  { name: 'Teredo (RFC 4380)', network: ipaddr.IPv6.parse('2001::'), bits: 32, at: 12, isInverted: true },
]

/** Parses an address. Returns the IPv4 address if an IPv6 address contains one. @throws if the text is no address */
export function parseAddress(text: string): ipaddr.IPv4 | ipaddr.IPv6 {
  const address = ipaddr.parse(text)
  if (address.kind() === 'ipv4') return address
  const found = NETWORKS_WITH_IPV4.find(({ network, bits }) => (address as ipaddr.IPv6).match(network, bits))
  if (!found) return address
  const bytes = address.toByteArray().slice(found.at, found.at + 4)
  return new ipaddr.IPv4(found.isInverted ? bytes.map(byte => 255 - byte) : bytes)
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
  const range = address as ipaddr.IPv6
  const overlapping = NETWORKS_WITH_IPV4.filter(
    ({ network, bits: networkBits }) => range.match(network, networkBits) || network.match(range, bits),
  )
  return bits < 16 || overlapping.some(({ at }) => bits < 8 * at + 8)
}
