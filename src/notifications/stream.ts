import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify'
import type { Listener } from '../db/listener.ts'
import type { Query } from '../db/sql.ts'
import { type EventStream, eventOf, openEventStream } from '../http/event-stream.ts'
import { addNamed, CHANNEL, type Named, type News, readNews } from './news.ts'

/** "at most 5 per user and process (the oldest goes)" */
const MOST_PER_USER = 5

const RETRY_MS = 250

type Caller = FastifyRequest['caller']
type Stream = { caller: Caller; wire: EventStream; synced: boolean }

export type Streams = ReturnType<typeof createStreams>

type Deps = {
  sql: Query
  listener: Listener
  log: FastifyBaseLogger
  now: () => Date
  /** Which of these sessions still run. */
  running: (sessionIds: string[]) => Promise<Set<string>>
  /** Hears of each stream that opens (1) or ends (-1). */
  count: (change: 1 | -1) => void
}

/**
 * The live streams of this process. One round at a time reads what is new, in one statement for everybody it concerns; what is
 * notified meanwhile waits for the next round. So a burst costs few statements, users without a stream here cost none, and each
 * stream is told things in the order in which they can be seen.
 */
export function createStreams({ sql, listener, log, now, running, count }: Deps) {
  const byUser = new Map<number, Set<Stream>>()
  const named: Named = new Map()
  const unsynced = new Set<Stream>()
  let turning = false
  let closed = false

  listener.on(CHANNEL, payload => {
    addNamed(named, payload, userId => byUser.has(userId))
    turn()
  })
  // "A lost LISTEN connection": what was notified meanwhile is lost, so every client is told where things stand.
  listener.onUp(() => {
    for (const stream of all()) unsynced.add(stream)
    turn()
  })

  function all(): Stream[] {
    return [...byUser.values()].flatMap(streams => [...streams])
  }

  function turn(): void {
    if (turning) return
    turning = true
    void run()
  }

  async function run(): Promise<void> {
    for (let failures = 0; !closed && (named.size > 0 || unsynced.size > 0); ) {
      const [asked, syncing] = [new Map(named), new Set(unsynced)]
      named.clear()
      unsynced.clear()
      try {
        await round(asked, syncing)
        failures = 0
      } catch (error) {
        if (!closed && failures === 0) log.warn({ err: error }, 'the streams could not be told; soon again')
        failures += 1
        // Whoever was to be told gets a `sync` instead, which covers all of it.
        for (const userId of asked.keys()) for (const stream of byUser.get(userId) ?? []) syncing.add(stream)
        for (const stream of syncing) if (byUser.get(stream.caller.userId)?.has(stream)) unsynced.add(stream)
        await delay(RETRY_MS, undefined, { ref: false })
      }
    }
    turning = false
  }

  async function round(asked: Named, syncing: Set<Stream>): Promise<void> {
    await endEnded(syncing)
    const users = new Set([...asked.keys(), ...[...syncing].map(stream => stream.caller.userId)])
    for (const news of await readNews(sql, [...users], asked)) tell(news, asked.has(news.userId), syncing)
  }

  /** A session may have ended between its being let in and our hearing of it, or while we heard nothing. */
  async function endEnded(syncing: Set<Stream>): Promise<void> {
    if (syncing.size === 0) return
    const still = await running([...syncing].map(stream => stream.caller.sessionId))
    for (const stream of syncing) if (!still.has(stream.caller.sessionId)) drop(stream)
  }

  function tell({ userId, unreadCount, latestId, fresh }: News, changed: boolean, syncing: Set<Stream>): void {
    const sync = eventOf('sync', JSON.stringify({ unread_count: unreadCount, latest_id: latestId }))
    const notifications = fresh.map(json => eventOf('notification', json)).join('')
    const unread = eventOf('unread_count', JSON.stringify({ unread_count: unreadCount }))
    for (const stream of byUser.get(userId) ?? []) {
      // One that opened during this round waits for its `sync`, which will cover what is told now.
      if (syncing.has(stream)) stream.wire.write(sync + notifications)
      else if (stream.synced && changed) stream.wire.write(notifications + unread)
      stream.synced ||= syncing.has(stream)
    }
  }

  function drop(stream: Stream): void {
    const { userId } = stream.caller
    const own = byUser.get(userId)
    if (!own?.delete(stream)) return
    if (own.size === 0) byUser.delete(userId)
    unsynced.delete(stream)
    stream.wire.end()
    count(-1)
  }

  return {
    /** Takes an answer over; it is a stream from now on, until the token's end at most. */
    open(reply: FastifyReply, caller: Caller): void {
      const own = byUser.get(caller.userId) ?? new Set()
      byUser.set(caller.userId, own)
      const wire = openEventStream(reply, { until: caller.expiresAt, now, ended: () => drop(stream) })
      const stream: Stream = { caller, wire, synced: false }
      own.add(stream)
      unsynced.add(stream)
      count(1)
      const [oldest] = own
      if (own.size > MOST_PER_USER) drop(oldest!)
      if (closed) drop(stream)
      turn()
    },

    /** Ends the streams of a session, or of all sessions of a user. */
    end({ userId, sessionId }: { userId: number; sessionId?: string | undefined }): void {
      for (const stream of [...(byUser.get(userId) ?? [])]) {
        if (sessionId === undefined || stream.caller.sessionId === sessionId) drop(stream)
      }
    },

    /** Ends all of them, and those that still come. */
    close(): void {
      closed = true
      for (const stream of all()) drop(stream)
    },
  }
}
