import { createSigner, createVerifier } from 'fast-jwt'
import type { Keys } from '../keys.ts'

/** The claims of an access token. All times are in Unix seconds. */
export type Claims = {
  /** The user's id. */
  sub: number
  /** The session's id, a uuid. */
  sid: string
  /** The number of the token within its session, starting at 1. In the token, this number is the last part of `jti`. */
  generation: number
  iat: number
  nbf: number
  exp: number
}

const ISSUER = 'courtside'

// Our tokens are much shorter than this limit. `read` refuses a longer token before it checks the signature, because
// the check of a signature is costly.
const MAX_LENGTH = 1024

// The clocks of two machines can differ by a few seconds. A machine must accept a token from another machine even if
// the clock of the other machine is ahead.
const LEEWAY_SECONDS = 5

/**
 * Creates the functions that sign and read tokens with HS256. The `kid` in the JWT header of a token selects one of our
 * keys. The JWT header selects nothing else. In particular, it cannot select another algorithm.
 */
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
        // `parseClaims` checks `iat` and `nbf` against the time that `read` receives. The callers of `read` check
        // `exp`.
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

    /** Returns the claims of a token that we signed, even if it has expired. Returns undefined for any other input. */
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

/**
 * Returns the `kid` from the JWT header of a token. Returns undefined if the JWT header has a field that we never
 * write, or names another algorithm.
 */
function readKeyId(token: string): string | undefined {
  const header = JSON.parse(Buffer.from(token.slice(0, token.indexOf('.')), 'base64url').toString('utf8'))
  const ourFields = ['alg', 'typ', 'kid']
  if (!Object.keys(header).every(name => ourFields.includes(name))) return undefined
  return header.alg === 'HS256' && typeof header.kid === 'string' ? header.kid : undefined
}

function parseClaims(payload: Record<string, unknown>, now: Date): Claims | undefined {
  const { sub, sid, jti, iat, nbf, exp } = payload
  if (typeof sub !== 'string' || typeof sid !== 'string' || typeof jti !== 'string') return undefined
  if (!/^[1-9]\d{0,15}$/.test(sub) || !/^[0-9a-f-]{36}$/.test(sid)) return undefined
  const generation = jti.startsWith(`${sid}.`) ? jti.slice(sid.length + 1) : ''
  if (!/^[1-9]\d{0,8}$/.test(generation)) return undefined
  if (!isUnixTime(iat) || !isUnixTime(nbf) || !isUnixTime(exp)) return undefined
  const maxTime = now.getTime() / 1000 + LEEWAY_SECONDS
  if (iat > maxTime || nbf > maxTime) return undefined
  return { sub: Number(sub), sid, generation: Number(generation), iat, nbf, exp }
}

function isUnixTime(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0
}
