import type { Listener } from '../db/listener.ts'
import type { Caller } from '../http/route.ts'
import type { Tokens } from './jwt.ts'
import { type EndedSession, onEnded } from './session-ended.ts'
import * as sessions from './sessions.ts'

/** If a NOTIFY is lost, this process accepts the tokens of the ended session for at most this time. */
const MAX_AGE_MS = 5_000

/** A full cache takes about 6 MB. */
const MAX_ENTRIES = 10_000

/** `since` is the monotonic time in milliseconds at which the look-up started. */
type Entry = { accepted: sessions.Accepted; since: number }

export type SessionCache = ReturnType<typeof createSessionCache>

/**
 * Creates a cache that keeps accepted tokens for 5 s. For most requests it saves a statement and the check of the
 * signature. It does not keep refused tokens. While the listener is down, it keeps nothing, because the process does
 * not learn of ended sessions.
 *
 * A refresh removes nothing from the cache, because the superseded token is accepted for another 30 s anyway.
 * @param listener if undefined, no token is cached
 */
export function createSessionCache(connections: sessions.Connections, tokens: Tokens, listener: Listener | undefined) {
  // The key is the complete token, so a changed token never matches. The oldest entry comes first.
  const entries = new Map<string, Entry>()
  // Counts invalidations. A row that was read before an invalidation must not be cached after that invalidation.
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
    /** Drops the tokens of a session. Call this after this process has ended the session, before it answers. */
    forget,

    /** Returns the caller to whom an access token belongs, or undefined if the token is refused at `now`. */
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
