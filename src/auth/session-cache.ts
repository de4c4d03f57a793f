import type { Listener } from '../db/listener.ts'
import type { Caller } from '../http/route.ts'
import type { Tokens } from './jwt.ts'
import { type EndedSession, onEnded } from './session-ended.ts'
import * as sessions from './sessions.ts'

/**
 * The maximum age of an entry. If the NOTIFY about an ended session is lost, this process accepts tokens of the session
 * for at most this time after the end.
 */
const MAX_AGE_MS = 5_000

/** The maximum number of cached tokens. A full cache takes about 6 MB. */
const MAX_ENTRIES = 10_000

/** `since` is the monotonic time in milliseconds at which the lookup in the database started. */
type Entry = { accepted: sessions.Accepted; since: number }

export type SessionCache = ReturnType<typeof createSessionCache>

/**
 * Creates a cache that keeps accepted tokens for 5 s. For a request with a cached token, the process runs no statement
 * and checks no signature. The cache does not keep refused tokens. While the listener has no connection, the process
 * does not learn of ended sessions, so the cache stays empty.
 *
 * The guards accept a superseded token for 30 s after the refresh. The cache keeps a token for at most 5 s after the
 * lookup in the database. So a refresh does not have to remove the superseded token from the cache.
 * @param listener receives the messages about ended sessions. If it is undefined, the cache keeps no tokens
 */
export function createSessionCache(connections: sessions.Connections, tokens: Tokens, listener: Listener | undefined) {
  // The map is keyed by the complete token, so a changed token never matches. The oldest entry comes first.
  const entries = new Map<string, Entry>()
  // The number of calls of `clear` and `forget`. If `authenticate` reads a session before such a call, it must not
  // cache the token after the call, because the session may have ended.
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
    /** Drops the cached tokens of a session. A route that ends a session must call `forget` before it answers. */
    forget,

    /** Returns the caller to whom an access token belongs, or undefined if the token is not valid at `now`. */
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
