import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Query } from '../db/sql.ts'
import { isCompressed, JSON_BODY, mediaType } from '../http/body.ts'
import type { Networks } from '../limits/network-key.ts'
import { createThrottle } from '../limits/throttle.ts'
import { bearer } from './guard.ts'
import type { Claims, Tokens } from './jwt.ts'
import { findTokenSession, type KnownClient } from './known-clients.ts'

type Dependencies = {
  sql: Query
  networks: Networks
  isSharedNetwork(request: FastifyRequest): boolean
  tokens: Tokens
  now: () => Date
}

/**
 * Creates the throttle of a code route. It counts most requests before it reads their body. Two kinds of request are
 * counted later:
 *
 * - A request with a token that we signed. Its body must be valid before it is counted. If the token belongs to an
 *   account with the address of the body, only the session is counted. So a neighbour, or a page that runs in the same
 *   browser, cannot use up the requests that a known client may send in a minute.
 * - A request whose content type is not JSON, or whose body is compressed. A page of a foreign origin can make a
 *   browser send a request that is no JSON. Such a request does not count if its answer is a 415 or 413. It also does
 *   not count if `Sec-Fetch-Site` names another origin.
 */
export function createCodeThrottle(
  { sql, networks, isSharedNetwork, now, tokens }: Dependencies,
  name: string,
  limit: number,
) {
  const throttle = createThrottle({ sql, now, networks, isShared: isSharedNetwork, name, limit })
  /** The requests that are not counted yet, and the claims of their tokens. */
  const pending = new WeakMap<FastifyRequest, Claims | undefined>()
  const readClaims = (request: FastifyRequest): Claims | undefined => tokens.read(bearer(request) ?? '', now())

  return {
    async onRequest(request: FastifyRequest, reply: FastifyReply): Promise<void> {
      const claims = readClaims(request)
      if (!claims && isJson(request)) return throttle.count(request, reply)
      pending.set(request, claims)
      if (!claims) await throttle.check(request, reply)
    },

    /**
     * Counts a request that `onRequest` left pending. A route calls it when all fields of the body are valid.
     * @returns the known client if the token is one of a known client of the account with the address `email`. The
     *   routes ignore every other token instead of answering 401
     */
    async countValid(request: FastifyRequest, reply: FastifyReply, email: string): Promise<KnownClient | undefined> {
      const claims = pending.get(request)
      if (!pending.delete(request)) return undefined
      const session = claims && (await findTokenSession(sql, claims, email, now()))
      await (session ? throttle.countSession(request, reply, session.sessionId) : throttle.count(request, reply))
      return session?.isKnown ? session : undefined
    },

    /** Counts a request that was refused before `countValid`, and adds the rate-limit headers to its answer. */
    async onSend(request: FastifyRequest, reply: FastifyReply, payload: unknown): Promise<unknown> {
      if (pending.delete(request) && reply.statusCode < 429) {
        const count = isForeign(request, reply) ? throttle.check : throttle.count
        // The answer is decided already. So a client that is over its limit also gets this answer, with headers that
        // show the limit. An unreachable database does not replace the answer.
        await count(request, reply).catch(() => {})
      }
      return payload
    },
  }
}

function isJson(request: FastifyRequest): boolean {
  return JSON_BODY.types.includes(mediaType(request.headers['content-type'])) && !isCompressed(request)
}

function isForeign(request: FastifyRequest, { statusCode }: FastifyReply): boolean {
  if (statusCode === 415) return true
  if (isJson(request)) return false
  return statusCode === 413 || /^(cross|same)-site$/.test(String(request.headers['sec-fetch-site']))
}
