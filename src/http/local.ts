import type { FastifyRequest } from 'fastify'
import { isLoopback } from '../loopback.ts'
import { sendsForwardedHeader } from './client-address.ts'

/**
 * Returns whether the request comes from a browser or program on this machine. Three conditions must be true:
 * - The socket's peer has a loopback address.
 * - No header shows that a proxy forwarded the request.
 * - `Host` is `localhost` or a loopback address. Otherwise a remote web page could reach this service by a host name
 *   that resolves to a loopback address (DNS rebinding).
 */
export function isLocalRequest(request: FastifyRequest): boolean {
  const { socket, headers } = request
  if (sendsForwardedHeader(request) || headers.via !== undefined) return false
  return isLoopback(socket.remoteAddress ?? '') && isLoopback(readHostName(headers.host ?? ''))
}

/** Returns the name or address in a Host header without its port, or an empty string if the header is malformed. */
function readHostName(host: string): string {
  const [, bracketed, plain] = /^(?:\[([0-9a-f:.]+)\]|([0-9a-z.]+))(?::\d{1,5})?$/i.exec(host) ?? []
  return bracketed ?? plain ?? ''
}
