import { createHash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** Computes the ETag for content that is the same for every client. */
export function computeEtag(content: string | Buffer): string {
  return `"${createHash('sha256').update(content).digest('base64url')}"`
}

/**
 * Sends content, or answers 304 if the client has a current copy. `no-cache` allows the client to keep a copy, but the
 * client must revalidate the copy before each use.
 */
export function sendWithEtag(request: FastifyRequest, reply: FastifyReply, content: string | Buffer, etag: string) {
  reply.headers({ 'cache-control': 'no-cache', etag })
  return request.headers['if-none-match'] === etag ? reply.code(304).send() : reply.send(content)
}
