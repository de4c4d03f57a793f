import { createHash, timingSafeEqual } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { audit } from '../audit.ts'
import type { Context } from '../context.ts'
import { forbidden, unauthenticated } from '../errors.ts'
import type { Access, Caller } from '../http/route.ts'
import type { Claims, Tokens } from './jwt.ts'
import type { SessionCache } from './session-cache.ts'

/** The token of an `Authorization: Bearer` header, the only place where one is looked for. */
export function bearer(request: FastifyRequest): string | undefined {
  return /^Bearer +([^\s]+) *$/i.exec(request.headers.authorization ?? '')?.[1]
}

/** Whether something was sent in the place of a Bearer token, readable or not. */
function sendsToken(request: FastifyRequest): boolean {
  return /^Bearer +\S/i.test(request.headers.authorization ?? '')
}

/** The claims of the token that was sent, expired or not. @throws AppError 401 when there is none of ours */
export function requireClaims(request: FastifyRequest, tokens: Tokens, now: Date): Claims {
  const claims = tokens.read(bearer(request) ?? '', now)
  if (!claims) throw unauthenticated(sendsToken(request))
  return claims
}

/** One hook for each kind of access; `public` has none. */
export function createGuards({ now, intakeKeys, config }: Context, { authenticate }: SessionCache) {
  const intake = intakeKeys.map(digest)
  const metrics = config.metricsToken === undefined ? [] : [digest(config.metricsToken)]
  return {
    public: undefined,

    async user(request: FastifyRequest): Promise<void> {
      const caller = await authenticate(bearer(request) ?? '', now())
      if (!caller) throw unauthenticated(sendsToken(request))
      request.caller = caller
    },

    async producer(request: FastifyRequest): Promise<void> {
      if (matchesAnyKey(request, intake)) return
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
      if (matchesAnyKey(request, metrics)) return
      auditRefusedKey(request)
      throw unauthenticated(sendsToken(request))
    },
  } satisfies Record<Access, unknown>
}

/** Every key is compared, and digests have one length, so that the time tells nothing. */
function matchesAnyKey(request: FastifyRequest, keys: readonly Buffer[]): boolean {
  const sent = digest(bearer(request) ?? '')
  return keys.map(key => timingSafeEqual(key, sent)).some(equal => equal)
}

/** Notes that a key was tried. Who sends none is no more than lost. */
function auditRefusedKey(request: FastifyRequest, caller?: Caller): void {
  if (bearer(request) !== undefined) audit(request, 'key_refused', caller)
}

function digest(key: string): Buffer {
  return createHash('sha256').update(key).digest()
}
