import { isUtf8 } from 'node:buffer'
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

// The clocks of two machines can differ. A machine must accept a token from another machine even if the clock of the
// other machine is ahead (decisions.md, "a token whose `iat` or `nbf` is ahead of our clock").
const LEEWAY_SECONDS = 60

// The last time that a `Date` can represent, in Unix seconds.
const MAX_UNIX_TIME = 8.64e12

// A uuid in the only spelling that PostgreSQL writes. PostgreSQL reads every such text as a uuid.
const UUID = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/

// PostgreSQL computes with generations as int4. The greatest int4 is more than twice as large as this limit, so no such
// computation overflows.
const MAX_GENERATION = 1e9

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
 * Returns the `kid` from the JWT header of a token. Returns undefined for a token that the service never writes. The
 * parts of such a token are not canonical base64url or not UTF-8, or its JWT header has another field, type or
 * algorithm.
 */
function readKeyId(token: string): string | undefined {
  const [header, payload] = token.split('.').map(decode)
  if (!header || !payload || !isUtf8(header) || !isUtf8(payload)) return undefined
  const { kid, ...rest } = JSON.parse(header.toString('utf8'))
  const isOurs = Object.keys(rest).length === 2 && rest.alg === 'HS256' && rest.typ === 'JWT'
  return isOurs && typeof kid === 'string' ? kid : undefined
}

/**
 * Decodes base64url. The last character of a part can have unused bits, so several spellings have the same value.
 * @throws Error if the text is not the spelling that the service writes
 */
function decode(part: string): Buffer {
  const bytes = Buffer.from(part, 'base64url')
  if (bytes.toString('base64url') !== part) throw new Error('the part is not canonical base64url')
  return bytes
}

function parseClaims(payload: Record<string, unknown>, now: Date): Claims | undefined {
  const { sub, sid, jti, iat, nbf, exp, aud } = payload
  // The service never writes `aud`, so a token with this claim is meant for another service.
  if (aud !== undefined || typeof sid !== 'string' || typeof jti !== 'string') return undefined
  const userId = parsePositive(sub, Number.MAX_SAFE_INTEGER)
  const generation = parsePositive(jti.startsWith(`${sid}.`) && jti.slice(sid.length + 1), MAX_GENERATION)
  if (userId === undefined || generation === undefined || !UUID.test(sid)) return undefined
  if (!isUnixTime(iat) || !isUnixTime(nbf) || !isUnixTime(exp)) return undefined
  const maxTime = now.getTime() / 1000 + LEEWAY_SECONDS
  if (iat > maxTime || nbf > maxTime) return undefined
  return { sub: userId, sid, generation, iat, nbf, exp }
}

/** Parses an integer from 1 to `max`. Returns undefined if the service never writes such a value. */
function parsePositive(text: unknown, max: number): number | undefined {
  const value = Number(text)
  return Number.isSafeInteger(value) && value >= 1 && value <= max && String(value) === text ? value : undefined
}

function isUnixTime(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0 && (value as number) <= MAX_UNIX_TIME
}
