import type { FastifyRequest } from 'fastify'
import { audit } from '../audit.ts'
import type { Context } from '../context.ts'
import { forbidden, unauthenticated } from '../errors.ts'
import type { Access, Caller } from '../http/route.ts'
import { digestKey, matchesAny } from '../secrets.ts'
import type { Claims, Tokens } from './jwt.ts'
import type { SessionCache } from './session-cache.ts'

/**
 * Returns the token from the header `Authorization: Bearer`, or undefined if the header contains no well-formed token.
 */
export function bearer(request: FastifyRequest): string | undefined {
  return /^Bearer +([^\s]+) *$/i.exec(request.headers.authorization ?? '')?.[1]
}

/** Returns whether the `Authorization` header contains a Bearer token, even a malformed one. */
function sendsToken(request: FastifyRequest): boolean {
  return /^Bearer +\S/i.test(request.headers.authorization ?? '')
}

/**
 * Returns the claims of the request's token. The token may have expired.
 * @throws AppError 401 if the request has no token that this service signed
 */
export function requireClaims(request: FastifyRequest, tokens: Tokens, now: Date): Claims {
  const claims = tokens.read(bearer(request) ?? '', now)
  if (!claims) throw unauthenticated(sendsToken(request))
  return claims
}

/** Creates one hook for each kind of access. Public routes accept every request, so `public` has no hook. */
export function createGuards({ now, intakeKeys, config }: Context, { authenticate }: SessionCache) {
  const intakeDigests = intakeKeys.map(digestKey)
  const metricsDigests = config.metricsToken === undefined ? [] : [digestKey(config.metricsToken)]
  return {
    public: undefined,

    async user(request: FastifyRequest): Promise<void> {
      const caller = await authenticate(bearer(request) ?? '', now())
      if (!caller) throw unauthenticated(sendsToken(request))
      request.caller = caller
    },

    async producer(request: FastifyRequest): Promise<void> {
      if (matchesAnyKey(request, intakeDigests)) return
      const caller = await authenticate(bearer(request) ?? '', now())
      auditRefusedKey(request, caller)
      if (caller) {
        throw forbidden({
          fr: 'Cette opération demande une clé de service.',
          en: 'This operation needs a service key.',
        })
      }
      throw unauthenticated(sendsToken(request))
    },

    async operator(request: FastifyRequest): Promise<void> {
      if (matchesAnyKey(request, metricsDigests)) return
      auditRefusedKey(request)
      throw unauthenticated(sendsToken(request))
    },
  } satisfies Record<Access, unknown>
}

/** Returns whether the request contains one of the configured keys. */
function matchesAnyKey(request: FastifyRequest, digests: readonly Buffer[]): boolean {
  return matchesAny(bearer(request) ?? '', digests)
}

/** Writes an audit line about a request with a rejected key. Writes nothing about a request without a key. */
function auditRefusedKey(request: FastifyRequest, caller?: Caller): void {
  if (bearer(request) !== undefined) audit(request, 'key_refused', caller)
}
