import type { FastifyRequest } from 'fastify'
import ipaddr from 'ipaddr.js'

/**
 * "answers only a loopback peer that sends no forwarded header and a `Host` of localhost or a loopback address". The peer
 * is the socket's own, not what a proxy says of it; and the host counts, since a page elsewhere can give its own name our
 * address (DNS rebinding).
 */
export function isLocal({ socket, headers }: FastifyRequest): boolean {
  const forwarded = Object.keys(headers).some(name => /^(x-forwarded-.*|forwarded|x-real-ip|via)$/.test(name))
  return !forwarded && isLoopback(socket.remoteAddress) && isLoopbackHost(headers.host)
}

function isLoopbackHost(host: string | undefined): boolean {
  const [, bracketed, plain] = /^(?:\[([0-9a-f:.]+)\]|([0-9a-z.]+))(?::\d{1,5})?$/i.exec(host ?? '') ?? []
  return plain?.toLowerCase() === 'localhost' || isLoopback(bracketed ?? plain)
}

function isLoopback(address: string | undefined): boolean {
  // Only the usual notation: `127.1` and `0x7f000001` are nothing that a person types.
  const usual = address !== undefined && (ipaddr.IPv4.isValidFourPartDecimal(address) || ipaddr.IPv6.isValid(address))
  return usual && ipaddr.process(address).range() === 'loopback'
}
