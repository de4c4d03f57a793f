import type { FastifyRequest } from 'fastify'
import { isLoopback } from '../loopback.ts'
import { digestKey, matchesAny } from '../secrets.ts'
import { comesThroughProxy } from './client-address.ts'

/**
 * Returns whether a request may use the routes for development. The request must contain the key of the development
 * mailbox as the query parameter `key`. It must come from a browser or program on this machine.
 */
export function isDevelopmentRequest(request: FastifyRequest, key: string): boolean {
  return isLocalRequest(request) && isKey((request.query as { key?: unknown }).key, key)
}

/**
 * Returns whether the request comes from a browser or program on this machine. Three conditions must be true:
 * - The socket's peer has a loopback address.
 * - Nothing shows that a proxy forwarded the request.
 * - `Host` is `localhost` or a loopback address. Otherwise a remote web page could reach this service by a host name
 *   that resolves to a loopback address (DNS rebinding).
 */
export function isLocalRequest(request: FastifyRequest): boolean {
  if (comesThroughProxy(request)) return false
  return isLoopback(request.socket.remoteAddress ?? '') && isLoopback(readHostName(request.headers.host ?? ''))
}

function isKey(sent: unknown, key: string): boolean {
  return typeof sent === 'string' && matchesAny(sent, [digestKey(key)])
}

/** Returns the name or address in a Host header without its port, or an empty string if the header is malformed. */
function readHostName(host: string): string {
  const [, bracketed, plain] = /^(?:\[([0-9a-f:.]+)\]|([0-9a-z.]+))(?::\d{1,5})?$/i.exec(host) ?? []
  return bracketed ?? plain ?? ''
}
