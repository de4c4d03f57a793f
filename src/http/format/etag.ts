import { createHash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** Computes the ETag for content that is the same for every client. */
export function computeEtag(content: Buffer): string {
  return `"${createHash('sha256').update(content).digest('base64url')}"`
}

/**
 * Sends content, or answers 304 if the client already has this content. The header `cache-control: no-cache` allows the
 * client to keep a copy, but the client must ask the service before each use of the copy.
 */
export function sendWithEtag(request: FastifyRequest, reply: FastifyReply, content: Buffer, etag: string) {
  reply.headers({ 'cache-control': 'no-cache', etag })
  return isCurrent(request.headers['if-none-match'], etag) ? reply.code(304).send() : reply.send(content)
}

/**
 * Returns whether one of the tags in an If-None-Match header is the ETag. The comparison is weak, as RFC 9110 §13.1.2
 * requires: it ignores `W/`. A proxy that compresses an answer adds `W/` to its ETag.
 */
function isCurrent(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false
  return ifNoneMatch.trim() === '*' || [...ifNoneMatch.matchAll(/"[^"]*"/g)].some(([tag]) => tag === etag)
}
