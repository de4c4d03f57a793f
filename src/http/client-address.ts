import { BlockList, isIP } from 'node:net'
import type { FastifyRequest } from 'fastify'
import ipaddr from 'ipaddr.js'

const FORWARDING = ['x-forwarded-for', 'forwarded', 'x-real-ip'] as const

/**
 * What a client is throttled by: its IPv4 address, or the /64 of its IPv6 one, since a household owns a whole /64.
 * `request.ip` has already read `X-Forwarded-For` from the right, past the trusted proxies only.
 */
export function clientKey(request: FastifyRequest): string {
  // A trusted proxy may still pass on rubbish; then the peer's own address is what we know.
  const forwarded = withoutPort(request.ip)
  const written = isIP(forwarded) ? forwarded : (request.socket.remoteAddress ?? '0.0.0.0')
  const address = ipaddr.process(written)
  if (address.kind() === 'ipv4') return address.toString()
  const network = (address as ipaddr.IPv6).parts.slice(0, 4)
  return `${network.map(part => part.toString(16)).join(':')}::/64`
}

/** Some proxies write `192.0.2.1:5000` or `[2001:db8::1]:443`; taken for rubbish, that would make all the world one client. */
function withoutPort(written: string): string {
  const [, bracketed, plain] = /^(?:\[([^\]]*)\](?::\d+)?|([\d.]+):\d+)$/.exec(written) ?? []
  return bracketed ?? plain ?? written
}

function sendsForwardedHeader(request: FastifyRequest): boolean {
  return FORWARDING.some(name => request.headers[name] !== undefined)
}

/**
 * Notices a forwarded header from a peer that is no declared proxy. It is ignored, but an operator must hear of it: a
 * proxy that nobody declared throttles the whole world as one address.
 * @param count is called for each
 */
export function watchUndeclaredProxy(isTrusted: (address: string) => boolean, count: () => void) {
  let seen = 0
  let loggedAt = Number.NEGATIVE_INFINITY
  return {
    /** How many such requests there were since the start. */
    get seen() {
      return seen
    },
    onceKey(request: FastifyRequest, now: Date): void {
      if (!sendsForwardedHeader(request) || isTrusted(request.socket.remoteAddress ?? '')) return
      seen += 1
      count()
      if (now.getTime() - loggedAt < 60_000) return
      loggedAt = now.getTime()
      request.log.error(
        { seen },
        'a forwarded header came from a peer that is not in TRUST_PROXY and was ignored: is there a proxy to declare?',
      )
    },
  }
}

export type UndeclaredProxyWatch = ReturnType<typeof watchUndeclaredProxy>

/** Whether an address is within one of the declared proxies' addresses or CIDR ranges. */
export function trustedProxies(ranges: readonly string[]): (address: string) => boolean {
  const list = new BlockList()
  for (const range of ranges) {
    const [address, bits] = range.split('/')
    const family = isIP(address!) === 6 ? 'ipv6' : 'ipv4'
    if (bits === undefined) list.addAddress(address!, family)
    else list.addSubnet(address!, Number(bits), family)
  }
  // A dual-stack socket shows an IPv4 peer as ::ffff:a.b.c.d.
  return address => isIP(address) !== 0 && list.check(ipaddr.process(address).toString(), family(address))
}

function family(address: string): 'ipv4' | 'ipv6' {
  return ipaddr.process(address).kind()
}
