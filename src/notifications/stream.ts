import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify'
import type { Listener } from '../db/listener.ts'
import type { Query } from '../db/sql.ts'
import { type EventStream, formatEvent, openEventStream } from '../http/event-stream.ts'
import {
  collectChanges,
  INBOX_CHANNEL,
  type InboxChange,
  type PendingChanges,
  readInboxChanges,
} from './inbox-changes.ts'

/** "at most 5 per user and process (the oldest goes)" */
const MAX_PER_USER = 5

const RETRY_MS = 250

type Caller = FastifyRequest['caller']
type Stream = { caller: Caller; wire: EventStream; synced: boolean }

type Deps = {
  sql: Query
  listener: Listener
  log: FastifyBaseLogger
  now: () => Date
  /** Which of these sessions still run. */
  findRunning: (sessionIds: string[]) => Promise<Set<string>>
  /** Hears of each stream that opens (1) or ends (-1). */
  count: (change: 1 | -1) => void
}

/**
 * The live streams of this process. One round at a time reads what is new, in one statement for everybody it concerns; what is
 * notified meanwhile waits for the next round. So a burst costs few statements, users without a stream here cost none, and each
 * stream is told things in the order in which they can be seen.
 */
export class Streams {
  readonly #deps: Deps
  readonly #byUser = new Map<number, Set<Stream>>()
  /** What has been notified since the last round began, and the streams that are to get a `sync`. */
  readonly #named: PendingChanges = new Map()
  readonly #unsynced = new Set<Stream>()
  #turning = false
  #closed = false

  constructor(deps: Deps) {
    this.#deps = deps
    deps.listener.on(INBOX_CHANNEL, payload => {
      collectChanges(this.#named, payload, userId => this.#byUser.has(userId))
      this.#turn()
    })
    // "A lost LISTEN connection": what was notified meanwhile is lost, so every client is told where things stand.
    deps.listener.onUp(() => {
      for (const stream of this.#all()) this.#unsynced.add(stream)
      this.#turn()
    })
  }

  /** Takes an answer over; it is a stream from now on, until the token's end at most. */
  open(reply: FastifyReply, caller: Caller): void {
    const own = this.#byUser.get(caller.userId) ?? new Set()
    this.#byUser.set(caller.userId, own)
    const ended = () => this.#drop(stream)
    const wire = openEventStream(reply, { until: caller.expiresAt, now: this.#deps.now, ended })
    const stream: Stream = { caller, wire, synced: false }
    own.add(stream)
    this.#unsynced.add(stream)
    this.#deps.count(1)
    const [oldest] = own
    if (own.size > MAX_PER_USER) this.#drop(oldest!)
    if (this.#closed) this.#drop(stream)
    this.#turn()
  }

  /** Ends the streams of a session, or of all sessions of a user. */
  end({ userId, sessionId }: { userId: number; sessionId?: string | undefined }): void {
    for (const stream of [...(this.#byUser.get(userId) ?? [])]) {
      if (sessionId === undefined || stream.caller.sessionId === sessionId) this.#drop(stream)
    }
  }

  /** Ends all of them, and those that still come. */
  close(): void {
    this.#closed = true
    for (const stream of this.#all()) this.#drop(stream)
  }

  #all(): Stream[] {
    return [...this.#byUser.values()].flatMap(streams => [...streams])
  }

  #drop(stream: Stream): void {
    const { userId } = stream.caller
    const own = this.#byUser.get(userId)
    if (!own?.delete(stream)) return
    if (own.size === 0) this.#byUser.delete(userId)
    this.#unsynced.delete(stream)
    stream.wire.end()
    this.#deps.count(-1)
  }

  #turn(): void {
    if (this.#turning) return
    this.#turning = true
    void this.#run()
  }

  async #run(): Promise<void> {
    for (let failures = 0; !this.#closed && (this.#named.size > 0 || this.#unsynced.size > 0); ) {
      const [asked, syncing] = [new Map(this.#named), new Set(this.#unsynced)]
      this.#named.clear()
      this.#unsynced.clear()
      try {
        await this.#round(asked, syncing)
        failures = 0
      } catch (error) {
        if (!this.#closed && failures === 0) {
          this.#deps.log.warn({ err: error }, 'the streams could not be told; soon again')
        }
        failures += 1
        this.#putBack(asked, syncing)
        await delay(RETRY_MS, undefined, { ref: false })
      }
    }
    this.#turning = false
  }

  /** After a round that failed: whoever was to be told gets a `sync` instead, which covers all of it. */
  #putBack(asked: PendingChanges, syncing: Set<Stream>): void {
    for (const userId of asked.keys()) for (const stream of this.#byUser.get(userId) ?? []) this.#unsynced.add(stream)
    for (const stream of syncing) if (this.#byUser.get(stream.caller.userId)?.has(stream)) this.#unsynced.add(stream)
  }

  async #round(asked: PendingChanges, syncing: Set<Stream>): Promise<void> {
    await this.#endEnded(syncing)
    const users = new Set([...asked.keys(), ...[...syncing].map(stream => stream.caller.userId)])
    for (const news of await readInboxChanges(this.#deps.sql, [...users], asked)) {
      this.#tell(news, asked.has(news.userId), syncing)
    }
  }

  /** A session may have ended between its being let in and our hearing of it, or while we heard nothing. */
  async #endEnded(syncing: Set<Stream>): Promise<void> {
    if (syncing.size === 0) return
    const still = await this.#deps.findRunning([...syncing].map(stream => stream.caller.sessionId))
    for (const stream of syncing) if (!still.has(stream.caller.sessionId)) this.#drop(stream)
  }

  #tell({ userId, unreadCount, latestId, fresh }: InboxChange, changed: boolean, syncing: Set<Stream>): void {
    const sync = formatEvent('sync', JSON.stringify({ unread_count: unreadCount, latest_id: latestId }))
    const notifications = fresh.map(json => formatEvent('notification', json)).join('')
    const unread = formatEvent('unread_count', JSON.stringify({ unread_count: unreadCount }))
    for (const stream of this.#byUser.get(userId) ?? []) {
      // One that opened during this round waits for its `sync`, which will cover what is told now.
      if (syncing.has(stream)) stream.wire.write(sync + notifications)
      else if (stream.synced && changed) stream.wire.write(notifications + unread)
      stream.synced ||= syncing.has(stream)
    }
  }
}
