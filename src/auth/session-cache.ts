import type { Listener } from '../db/listener.ts'
import type { Caller } from '../http/route.ts'
import type { Tokens } from './jwt.ts'
import { type EndedSession, onEnded } from './session-ended.ts'
import * as sessions from './sessions.ts'

/** "within 5 s in any fault": also if the notification of a session's end is lost. */
const MAX_AGE_MS = 5_000

/** As many tokens take about 6 MB. */
const MAX_ENTRIES = 10_000

/** `since` is the monotonic time of the look-up. */
type Entry = { accepted: sessions.Accepted; since: number }

export type SessionCache = ReturnType<typeof createSessionCache>

/**
 * Caches the accepted tokens of `sessions.authenticate` for 5 s. It saves a statement and the check of the signature on
 * most requests. Refusals are not cached. Nothing is cached while the listener is down, because the process then hears
 * of no ended session.
 *
 * A refresh invalidates nothing: the superseded token is accepted for another 30 s anyway.
 * @param listener without one there is no cache
 */
export function createSessionCache(connections: sessions.Connections, tokens: Tokens, listener: Listener | undefined) {
  // Keyed by the whole text of the token, so only a token that was checked to its last character matches. Oldest first.
  const entries = new Map<string, Entry>()
  // Invalidation counter. A row that was read before an invalidation must not be cached after it.
  let invalidations = 0

  function clear(): void {
    invalidations += 1
    entries.clear()
  }

  function forget({ userId, sessionId }: EndedSession): void {
    invalidations += 1
    for (const [token, { accepted }] of entries) {
      const { caller } = accepted
      if (caller.userId === userId && caller.sessionId === (sessionId ?? caller.sessionId)) entries.delete(token)
    }
  }

  if (listener) {
    listener.onUp(clear)
    listener.onDown(clear)
    onEnded(listener, forget)
  }

  function find(token: string, now: Date): Caller | undefined {
    const entry = entries.get(token)
    if (!entry || performance.now() - entry.since >= MAX_AGE_MS) return undefined
    return now < entry.accepted.until ? entry.accepted.caller : undefined
  }

  function add(token: string, entry: Entry): void {
    entries.delete(token)
    if (entries.size >= MAX_ENTRIES) entries.delete(entries.keys().next().value!)
    entries.set(token, entry)
  }

  return {
    /** Must be called after this process ended a session, before the answer. Other processes get a notification. */
    forget,

    /** Returns the caller of an access token, and undefined if the token is not accepted at this instant. */
    async authenticate(token: string, now: Date): Promise<Caller | undefined> {
      const cached = find(token, now)
      if (cached) return cached
      const claims = tokens.read(token, now)
      if (!claims) return undefined
      const [invalidationsBefore, since] = [invalidations, performance.now()]
      const accepted = await sessions.authenticate(connections, claims, now)
      if (accepted && listener?.isUp() && invalidations === invalidationsBefore) add(token, { accepted, since })
      return accepted?.caller
    },
  }
}
