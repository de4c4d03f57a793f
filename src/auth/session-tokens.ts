import type { Claims, Tokens } from './jwt.ts'

/** An access token is valid for 60 minutes. A client can refresh its token until the session ends. */
export const TOKEN_SECONDS = 60 * 60

const DAY_MS = 86_400_000

/**
 * The length of the grace period. In the grace period after a refresh, the guards and `refresh` accept the superseded
 * token (decisions.md, "the effect of a refresh on the previous token").
 */
export const GRACE_MS = 30_000

/** Returns the start of the grace periods that end at `now`. */
export function findGraceStart(now: Date): Date {
  return new Date(now.getTime() - GRACE_MS)
}

/** Returns the end of a session that starts at `now`. A day is 24 hours, so a clock change moves no end. */
export function computeSessionEnd(now: Date, sessionDays: number): Date {
  return new Date(now.getTime() + sessionDays * DAY_MS)
}

/**
 * Returns the first token of a session that starts at `now`. A session lasts a day or more, so it outlives the token.
 */
export function signFirstToken(tokens: Tokens, userId: number, sessionId: string, now: Date): string {
  const expiresAt = computeSessionEnd(now, 1)
  return tokens.sign(buildClaims({ userId, sessionId, generation: 1, issuedAt: now, expiresAt }))
}

/** The columns of a session that determine the newest token of the session. `expiresAt` is the end of the session. */
type SessionRow = { userId: number; sessionId: string; generation: number; issuedAt: Date; expiresAt: Date }

/**
 * Derives the claims of a session's newest token. The claims depend only on the session's row, so the same row always
 * results in the same token.
 */
export function buildClaims({ userId, sessionId, generation, issuedAt, expiresAt }: SessionRow): Claims {
  const iat = Math.floor(issuedAt.getTime() / 1000)
  const exp = Math.min(iat + TOKEN_SECONDS, Math.floor(expiresAt.getTime() / 1000))
  return { sub: userId, sid: sessionId, generation, iat, nbf: iat, exp }
}
