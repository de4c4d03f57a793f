import type { Listener } from '../db/listener.ts'
import type { Caller } from '../http/route.ts'
import type { Tokens } from './jwt.ts'
import * as sessions from './sessions.ts'

/** "within 5 s in any fault": also when an ending is notified and never heard of. */
const MAX_AGE_MS = 5_000

/** Tokens; some 6 MB. */
const MAX_ENTRIES = 10_000

type Entry = { accepted: sessions.Accepted; since: number }

export type SessionCache = ReturnType<typeof createSessionCache>

/**
 * `sessions.authenticate`, which remembers for a moment which tokens it let in: each request would cost a statement, and another
 * look at the signature. Refusals are not kept, and nothing is while the listener is down, since what ends then isn't heard of.
 *
 * A token that is superseded needs no word: for the next 30 s it is good anyway, and it is kept for 5 s.
 * @param listener undefined for no cache
 */
export function createSessionCache(connections: sessions.Connections, tokens: Tokens, listener: Listener | undefined) {
  // By the token's own text, so that only what was checked to the last letter is taken as such; the oldest comes first.
  const kept = new Map<string, Entry>()
  // Counts what was heard: a row that was read before is not kept after, for it may be read before the session's end.
  let invalidations = 0

  function clear(): void {
    invalidations += 1
    kept.clear()
  }

  function forget({ userId, sessionId }: sessions.EndedSession): void {
    invalidations += 1
    for (const [token, { accepted }] of kept) {
      const { caller } = accepted
      if (caller.userId === userId && caller.sessionId === (sessionId ?? caller.sessionId)) kept.delete(token)
    }
  }

  if (listener) {
    listener.onUp(clear)
    listener.onDown(clear)
    sessions.onEnded(listener, forget)
  }

  function find(token: string, now: Date): Caller | undefined {
    const known = kept.get(token)
    if (!known || performance.now() - known.since >= MAX_AGE_MS) return undefined
    return now < known.accepted.until ? known.accepted.caller : undefined
  }

  function keep(token: string, entry: Entry): void {
    kept.delete(token)
    if (kept.size >= MAX_ENTRIES) kept.delete(kept.keys().next().value!)
    kept.set(token, entry)
  }

  return {
    /** To be called once a session was ended here, before that is answered: others hear of it a little later. */
    forget,

    /** Who brings this token, if it is one of ours and good at this instant. */
    async authenticate(token: string, now: Date): Promise<Caller | undefined> {
      const known = find(token, now)
      if (known) return known
      const claims = tokens.read(token, now)
      if (!claims) return undefined
      const [heardBefore, since] = [invalidations, performance.now()]
      const accepted = await sessions.authenticate(connections, claims, now)
      if (accepted && listener?.isUp() && invalidations === heardBefore) keep(token, { accepted, since })
      return accepted?.caller
    },
  }
}
