import { createHash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** The ETag of a content that is the same for everybody. */
export function computeEtag(content: string | Buffer): string {
  return `"${createHash('sha256').update(content).digest('base64url')}"`
}

/**
 * Answers with a content, or with 304 to who has this very one. A copy may be kept (`no-cache` doesn't forbid that), but has to be
 * checked before each use.
 */
export function sendWithEtag(request: FastifyRequest, reply: FastifyReply, content: string | Buffer, etag: string) {
  reply.headers({ 'cache-control': 'no-cache', etag })
  return request.headers['if-none-match'] === etag ? reply.code(304).send() : reply.send(content)
}
