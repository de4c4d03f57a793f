import { createHash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** The ETag of a content that is the same for everybody. */
export function tagOf(content: string | Buffer): string {
  return `"${createHash('sha256').update(content).digest('base64url')}"`
}

/**
 * Answers with a content, or with 304 to who has this very one. A copy may be kept (`no-cache` doesn't forbid that), but has to be
 * checked before each use.
 */
export function sendCopy(request: FastifyRequest, reply: FastifyReply, content: string | Buffer, tag: string) {
  reply.headers({ 'cache-control': 'no-cache', etag: tag })
  return request.headers['if-none-match'] === tag ? reply.code(304).send() : reply.send(content)
}
