import type { FastifyRequest } from 'fastify'
import { isLoopback } from '../loopback.ts'
import { sendsForwardedHeader } from './client-address.ts'

/**
 * Returns whether the request comes from "a loopback peer that sends no forwarded header and a `Host` of localhost or a
 * loopback address". The peer is the socket's address, not the one that a proxy names. The host counts because a web page
 * elsewhere can let its own name resolve to our address (DNS rebinding).
 */
export function isLocalRequest(request: FastifyRequest): boolean {
  const { socket, headers } = request
  if (sendsForwardedHeader(request) || headers.via !== undefined) return false
  return isLoopback(socket.remoteAddress ?? '') && isLoopback(readHostName(headers.host ?? ''))
}

/** Returns the name or address of a Host header without its port, or an empty text for a malformed header. */
function readHostName(host: string): string {
  const [, bracketed, plain] = /^(?:\[([0-9a-f:.]+)\]|([0-9a-z.]+))(?::\d{1,5})?$/i.exec(host) ?? []
  return bracketed ?? plain ?? ''
}
