import { isIP } from 'node:net'
import { compile } from '@fastify/proxy-addr'
import type { FastifyRequest } from 'fastify'
import ipaddr from 'ipaddr.js'

const LOG_INTERVAL_MS = 60_000

/**
 * Returns the key under which a client is throttled: its IPv4 address, or the /64 of its IPv6 address, because one household
 * owns a whole /64. `request.ip` has already read `X-Forwarded-For` from the right, past trusted proxies only.
 */
export function clientKey(request: FastifyRequest): string {
  // A trusted proxy may pass on a header that holds no address. Then only the peer's own address is known.
  const forwarded = withoutPort(request.ip)
  const text = isIP(forwarded) ? forwarded : (request.socket.remoteAddress ?? '0.0.0.0')
  const address = ipaddr.process(text)
  if (address.kind() === 'ipv4') return address.toString()
  const network = (address as ipaddr.IPv6).parts.slice(0, 4)
  return `${network.map(part => part.toString(16)).join(':')}::/64`
}

/** Some proxies add the port: `192.0.2.1:5000`, `[2001:db8::1]:443`. Unread, such texts would make all clients one. */
function withoutPort(text: string): string {
  const [, bracketed, plain] = /^(?:\[([^\]]*)\](?::\d+)?|([\d.]+):\d+)$/.exec(text) ?? []
  return bracketed ?? plain ?? text
}

/** Returns whether the request carries a header by which a proxy names the client. */
export function sendsForwardedHeader({ headers }: FastifyRequest): boolean {
  for (const name in headers) {
    if (name.startsWith('x-forwarded-') || name === 'forwarded' || name === 'x-real-ip') return true
  }
  return false
}

/**
 * Watches for forwarded headers from peers that are no declared proxy. The service ignores such a header, but the operator
 * must know: behind an undeclared proxy, the throttle takes all clients for one.
 * @param trusted addresses and CIDR ranges of the declared proxies
 * @param count is called for each such request
 */
export function watchUndeclaredProxy(trusted: readonly string[], count: () => void) {
  const isTrusted = compile([...trusted])
  let total = 0
  let loggedAt = Number.NEGATIVE_INFINITY
  return {
    /** The number of such requests since the start. */
    get total() {
      return total
    },
    check(request: FastifyRequest, now: Date): void {
      if (!sendsForwardedHeader(request) || isTrusted(request.socket.remoteAddress ?? '', 0)) return
      total += 1
      count()
      if (now.getTime() - loggedAt < LOG_INTERVAL_MS) return
      loggedAt = now.getTime()
      request.log.error(
        { total },
        'a forwarded header came from a peer that is not in TRUST_PROXY and was ignored: is there a proxy to declare?',
      )
    },
  }
}

export type UndeclaredProxyWatch = ReturnType<typeof watchUndeclaredProxy>
