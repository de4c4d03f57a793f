import { isIP } from 'node:net'
import { compile } from '@fastify/proxy-addr'
import type { FastifyRequest } from 'fastify'
import type { IPv6 } from 'ipaddr.js'
import { parseAddress, removePort } from '../ip-address.ts'

const LOG_INTERVAL_MS = 60_000

/**
 * Returns the function with which Fastify decides whether an address in `X-Forwarded-For` belongs to a trusted proxy.
 * Some proxies add a port to the address of the previous proxy, so the function ignores ports.
 * @param trusted the addresses and CIDR ranges of the declared proxies
 */
export function createProxyTrust(trusted: readonly string[]): (address: string) => boolean {
  const isTrusted = compile([...trusted])
  return address => isTrusted(removePort(address), 0)
}

/**
 * Returns the key under which the throttle counts the requests of a client. For an IPv4 client, the key is the address.
 * For an IPv6 client, the key is the /64 network, because a household usually has a whole /64. Behind NAT64, 6to4 or
 * Teredo, an IPv4 client has an IPv6 address that contains its IPv4 address. The key is then this IPv4 address.
 *
 * Fastify computes `request.ip`: it reads the addresses in `X-Forwarded-For` from right to left and skips only trusted
 * proxies.
 */
export function clientKey(request: FastifyRequest): string {
  const address = findClientAddress(request)
  if (address.kind() === 'ipv4') return address.toString()
  const network = (address as IPv6).parts.slice(0, 4)
  return `${network.map(part => part.toString(16)).join(':')}::/64`
}

/**
 * Returns a function that tells whether a client belongs to one of some networks.
 * @param networks addresses and CIDR ranges
 */
export function createNetworkMatch(networks: readonly string[]): (request: FastifyRequest) => boolean {
  if (networks.length === 0) return () => false
  const isInside = compile([...networks])
  return request => isInside(findClientAddress(request).toString(), 0)
}

function findClientAddress(request: FastifyRequest) {
  // The `X-Forwarded-For` of a trusted proxy may contain something other than an address. In that case we use the
  // address of the socket's peer.
  const forwarded = removePort(request.ip)
  return parseAddress(isIP(forwarded) ? forwarded : (request.socket.remoteAddress ?? '0.0.0.0'))
}

// The headers with which proxies, load balancers and delivery networks describe the client or themselves. Names that
// end with a hyphen are prefixes.
const PROXY_HEADERS = [
  ...['forwarded', 'via', 'x-forwarded', 'x-forwarded-', 'x-original-forwarded-for', 'x-real-ip', 'x-proxyuser-ip'],
  ...['client-ip', 'x-client-ip', 'x-cluster-client-ip', 'true-client-ip', 'x-remote-ip', 'x-remote-addr'],
  ...['proxy-client-ip', 'wl-proxy-client-ip', 'x-originating-ip', 'x-host', 'x-original-host'],
  ...['cf-', 'cdn-loop', 'x-envoy-', 'x-azure-', 'x-arr-', 'x-amz-cf-', 'x-appengine-', 'x-nf-', 'x-vercel-'],
  ...['fastly-client-ip', 'fly-client-ip', 'fly-forwarded-', 'do-connecting-ip', 'akamai-origin-hop'],
]
const PROXY_NAMES = new Set(PROXY_HEADERS.filter(name => !name.endsWith('-')))
const PROXY_PREFIXES = PROXY_HEADERS.filter(name => name.endsWith('-'))

/**
 * Returns whether something shows that a proxy forwarded the request: a header that proxies add, or HTTP/1.0. Browsers
 * and today's programs use HTTP/1.1, but nginx forwards requests with HTTP/1.0 and without headers by default.
 */
export function comesThroughProxy({ headers, raw }: FastifyRequest): boolean {
  if (raw.httpVersionMajor === 1 && raw.httpVersionMinor === 0) return true
  for (const name in headers) {
    if (PROXY_NAMES.has(name) || PROXY_PREFIXES.some(prefix => name.startsWith(prefix))) return true
  }
  return false
}

/**
 * Creates an object that warns the operator about possible proxies that are not declared. The service ignores the
 * addresses that such a peer forwards. If the peer is a proxy, the throttle therefore treats all clients behind the
 * proxy as one client.
 * @param trusted the addresses and CIDR ranges of the declared proxies
 * @param count the function that is called for each request that an undeclared proxy may have forwarded
 */
export function watchUndeclaredProxy(trusted: readonly string[], count: () => void) {
  const isTrusted = compile([...trusted])
  let total = 0
  let loggedAt = Number.NEGATIVE_INFINITY
  return {
    /** The number of requests from an undeclared peer that look forwarded since the process started. */
    get total() {
      return total
    },
    check(request: FastifyRequest, now: Date): void {
      if (!comesThroughProxy(request) || isTrusted(request.socket.remoteAddress ?? '', 0)) return
      total += 1
      count()
      if (now.getTime() - loggedAt < LOG_INTERVAL_MS) return
      loggedAt = now.getTime()
      request.log.error(
        { seen: total },
        'a request looks forwarded, but its peer is not in TRUST_PROXY; if the peer is your proxy, add it there',
      )
    },
  }
}
