import { createHash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** Returns the ETag of a content that is the same for every caller. */
export function computeEtag(content: string | Buffer): string {
  return `"${createHash('sha256').update(content).digest('base64url')}"`
}

/**
 * Sends a content, or 304 if the client has the current copy. The client may keep its copy (`no-cache` allows that) and must
 * check it before each use.
 */
export function sendWithEtag(request: FastifyRequest, reply: FastifyReply, content: string | Buffer, etag: string) {
  reply.headers({ 'cache-control': 'no-cache', etag })
  return request.headers['if-none-match'] === etag ? reply.code(304).send() : reply.send(content)
}
