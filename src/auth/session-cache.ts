import type { Listener } from '../db/listener.ts'
import type { Sql } from '../db/sql.ts'
import type { Claims } from './jwt.ts'
import * as sessions from './sessions.ts'

/** "within 5 s in any fault": also when an ending is notified and never heard of. */
const KEPT_MS = 5_000

/** Sessions; some 3 MB. */
const MOST_KEPT = 10_000

type Kept = { accepted: sessions.Accepted; generation: number; since: number }

export type SessionCache = ReturnType<typeof createSessionCache>

/**
 * `sessions.authenticate`, which remembers for a moment whom it let in: it would cost every request a statement. Refusals are not
 * kept, and nothing is while the listener is down, since what ends then isn't heard of.
 *
 * A token that is superseded needs no word: for the next 30 s it is good anyway, and it is kept for 5 s.
 * @param listener undefined for no cache
 */
export function createSessionCache(sql: Sql, listener: Listener | undefined) {
  // Of each session the token that was shown last; the oldest entry comes first.
  const kept = new Map<string, Kept>()
  // Counts what was heard: a row that was read before is not kept after, for it may be read before the session's end.
  let heard = 0

  function clear(): void {
    heard += 1
    kept.clear()
  }

  function forget({ userId, sessionId }: sessions.Ended): void {
    heard += 1
    if (sessionId !== undefined) kept.delete(sessionId)
    else for (const [id, { accepted }] of kept) if (accepted.caller.userId === userId) kept.delete(id)
  }

  if (listener) {
    listener.onUp(clear)
    listener.onDown(clear)
    sessions.onEnded(listener, forget)
  }

  function find(claims: Claims, now: Date): sessions.Caller | undefined {
    const known = kept.get(claims.sid)
    if (!known || known.generation !== claims.generation || performance.now() - known.since >= KEPT_MS) return undefined
    const { caller, until } = known.accepted
    if (caller.userId !== claims.sub || caller.expiresAt.getTime() !== claims.exp * 1000) return undefined
    return now < until ? caller : undefined
  }

  function keep(claims: Claims, entry: Kept): void {
    kept.delete(claims.sid)
    if (kept.size >= MOST_KEPT) kept.delete(kept.keys().next().value!)
    kept.set(claims.sid, entry)
  }

  return {
    /** To be called once a session was ended here, before that is answered: others hear of it a little later. */
    forget,

    /** Who brings this token, if it is good at this instant. */
    async authenticate(claims: Claims, now: Date): Promise<sessions.Caller | undefined> {
      const known = find(claims, now)
      if (known) return known
      const [heardBefore, since] = [heard, performance.now()]
      const accepted = await sessions.authenticate(sql, claims, now)
      if (accepted && listener?.isUp() && heard === heardBefore) {
        keep(claims, { accepted, generation: claims.generation, since })
      }
      return accepted?.caller
    },
  }
}
