import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { parseAddress } from '../ip-address.ts'
import { isLoopback } from '../loopback.ts'
import type { PushHost } from '../reach-settings.ts'

/** An endpoint that the service may call. `isLocal` means that the host is this machine. */
export type Endpoint = { url: URL; isLocal: boolean }

/** Returns the endpoint of a subscription, or undefined if the service must not call it. */
export type FindEndpoint = (endpoint: string) => Endpoint | undefined

/** The endpoints of the known push services have fewer than 1,000 characters. An index takes at most 2,704 bytes. */
export const MAX_ENDPOINT_LENGTH = 2_000

const SCHEME_PORTS: Record<string, number> = { 'http:': 80, 'https:': 443 }

/**
 * Creates the function that checks endpoints. An endpoint is a URL that a user sends, so it could name any server that
 * this process reaches. Only `https` URLs with a listed host and port pass. A host of this machine passes only if the
 * list names it with this port, and then with `http` too: this is for development and tests.
 * @param findOwnPort returns the port of the development push service in this process, if there is one
 */
export function createFindEndpoint(
  hosts: readonly PushHost[],
  findOwnPort: () => number | undefined = () => undefined,
): FindEndpoint {
  return text => {
    if (!URL.canParse(text)) return undefined
    const url = new URL(text)
    // `url.hash` is empty for a fragment without characters.
    if (url.username || url.password || url.href.includes('#') || url.href.length > MAX_ENDPOINT_LENGTH)
      return undefined
    const name = url.hostname.replace(/^\[|\]$/g, '')
    const port = findPort(url)
    const isLocal = isLoopback(name)
    const isListed = hosts.some(host => host.port === port && matches(host, name))
    const isOwn = isLocal && port === findOwnPort()
    if (!isListed && !isOwn) return undefined
    if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLocal)) return undefined
    if (isIP(name) !== 0 && !isAllowedAddress(name, isLocal)) return undefined
    return { url, isLocal }
  }
}

/** Returns the port of a URL. `port` of a URL is empty if the URL has the default port of its scheme. */
export function findPort({ port, protocol }: URL): number | undefined {
  return port === '' ? SCHEME_PORTS[protocol] : Number(port)
}

function matches({ name, isSuffix }: PushHost, host: string): boolean {
  if (!isSuffix) return host === name
  const isName = isIP(host) === 0 && !/^\.|\.\./.test(host)
  return isName && host.endsWith(`.${name}`)
}

/**
 * Returns whether the service may connect to an address for a push. Refuses addresses of private networks, of this
 * machine, and all others that do not belong to a host of the internet. An IPv6 address that contains an IPv4 address
 * passes only in the two forms that resolvers return.
 * @param isLocal whether the host of the endpoint is this machine. Then only addresses of this machine pass
 */
export function isAllowedAddress(text: string, isLocal: boolean): boolean {
  if (!ipaddr.isValid(text)) return false
  const [address, inner] = [ipaddr.parse(text), parseAddress(text)]
  if (isLocal) return inner.range() === 'loopback'
  if (inner.range() !== 'unicast') return false
  return (
    address.kind() === 'ipv4' || ALLOWED_IPV6.some(([network, bits]) => (address as ipaddr.IPv6).match(network, bits))
  )
}

const ALLOWED_IPV6 = [
  // All addresses that are assigned to hosts. The range of 6to4 is a part of it, so `parseAddress` matters here too.
  [ipaddr.IPv6.parse('2000::'), 3],
  // IPv4-mapped addresses, and the addresses of a NAT64 (RFC 6052).
  [ipaddr.IPv6.parse('::ffff:0:0'), 96],
  [ipaddr.IPv6.parse('64:ff9b::'), 96],
] as const
