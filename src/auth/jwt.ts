import { createSigner, createVerifier } from 'fast-jwt'
import type { Keys } from '../keys.ts'

/** What every token of ours says. Times are Unix seconds. */
export type Claims = {
  /** The user's id. */
  sub: number
  /** The sign-in, a uuid. */
  sid: string
  /** Which token of the sign-in's chain this is, from 1 on; the last part of `jti`. */
  generation: number
  iat: number
  nbf: number
  exp: number
}

const ISSUER = 'courtside'

// Far more than any token of ours; what is longer isn't worth hashing.
const MAX_LENGTH = 1024

// Clocks of several machines differ a little; a token must not be refused for coming from the faster one.
const LEEWAY_SECONDS = 5

/** HS256, and nothing else. `kid` names one of our keys; nothing in a token's own header chooses more than that. */
export function createTokens(keys: Keys) {
  const [newest] = keys.signing
  const sign = createSigner({ key: newest!.secret, algorithm: 'HS256', kid: newest!.id })
  const verifiers = new Map(
    keys.signing.map(({ id, secret }) => [
      id,
      createVerifier({
        key: secret,
        algorithms: ['HS256'],
        allowedIss: ISSUER,
        requiredClaims: ['iss', 'sub', 'iat', 'nbf', 'exp', 'jti', 'sid'],
        // Times are checked below, against the clock we are given.
        ignoreExpiration: true,
        ignoreNotBefore: true,
        cache: false,
      }),
    ]),
  )

  return {
    sign({ sub, sid, generation, iat, nbf, exp }: Claims): string {
      return sign({ iss: ISSUER, sub: String(sub), iat, nbf, exp, jti: `${sid}.${generation}`, sid })
    },

    /** The claims of a token that we signed, expired or not; undefined for anything else. */
    read(token: string, now: Date): Claims | undefined {
      if (token.length > MAX_LENGTH) return undefined
      try {
        const verify = verifiers.get(readKeyId(token) ?? '')
        return verify && parseClaims(verify(token), now)
      } catch {
        return undefined
      }
    },
  }
}

export type Tokens = ReturnType<typeof createTokens>

/** Reads only which key is named. A header with anything we never write (`crit`, `b64`, `jwk` …) names none. */
function readKeyId(token: string): string | undefined {
  const header = JSON.parse(Buffer.from(token.slice(0, token.indexOf('.')), 'base64url').toString('utf8'))
  const ours = ['alg', 'typ', 'kid']
  if (!Object.keys(header).every(name => ours.includes(name))) return undefined
  return header.alg === 'HS256' && typeof header.kid === 'string' ? header.kid : undefined
}

function parseClaims(payload: Record<string, unknown>, now: Date): Claims | undefined {
  const { sub, sid, jti, iat, nbf, exp } = payload
  if (typeof sub !== 'string' || typeof sid !== 'string' || typeof jti !== 'string') return undefined
  if (!/^[1-9]\d{0,15}$/.test(sub) || !/^[0-9a-f-]{36}$/.test(sid)) return undefined
  const generation = jti.startsWith(`${sid}.`) ? jti.slice(sid.length + 1) : ''
  if (!/^[1-9]\d{0,8}$/.test(generation)) return undefined
  if (!isInstant(iat) || !isInstant(nbf) || !isInstant(exp)) return undefined
  const latest = now.getTime() / 1000 + LEEWAY_SECONDS
  if (iat > latest || nbf > latest) return undefined
  return { sub: Number(sub), sid, generation: Number(generation), iat, nbf, exp }
}

function isInstant(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0
}
