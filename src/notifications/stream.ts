import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify'
import type { Listener } from '../db/listener.ts'
import type { Query } from '../db/sql.ts'
import { AppError } from '../errors.ts'
import { type EventStream, formatEvent, openEventStream } from '../http/event-stream.ts'
import {
  collectChanges,
  INBOX_CHANNEL,
  type InboxChange,
  type PendingChanges,
  readInboxChanges,
} from './inbox-changes.ts'

/**
 * The maximum number of open streams of one user in one process. If the user opens another stream, the oldest stream
 * ends.
 */
const MAX_PER_USER = 5

const RETRY_MS = 250

type Caller = FastifyRequest['caller']
type Stream = { caller: Caller; wire: EventStream; synced: boolean }

type Deps = {
  sql: Query
  listener: Listener
  /** The maximum number of open streams of this process. */
  maxStreams: number
  log: FastifyBaseLogger
  now: () => Date
  /** Returns those session ids whose sessions have not ended. */
  findRunning: (sessionIds: string[]) => Promise<Set<string>>
  /** Changes the number of open streams: by 1 when a stream opens, by -1 when a stream ends. */
  count: (change: 1 | -1) => void
}

/**
 * Serves the live streams of this process. Sends changes in rounds, one round at a time. A round reads the pending
 * changes of all users with one statement and sends them. Changes that arrive during a round wait for the next round.
 *
 * So a burst of changes needs few statements. Changes of users without a stream are ignored. Each stream receives
 * changes in the order in which the changes become visible in the database.
 */
export class Streams {
  readonly #deps: Deps
  readonly #byUser = new Map<number, Set<Stream>>()
  /** The changes that have arrived since the last round began. */
  readonly #pending: PendingChanges = new Map()
  /** The streams to which the next round sends a `sync`. */
  readonly #unsynced = new Set<Stream>()
  #isRunning = false
  #isClosed = false
  #open = 0

  constructor(deps: Deps) {
    this.#deps = deps
    deps.listener.on(INBOX_CHANNEL, payload => {
      collectChanges(this.#pending, payload, userId => this.#byUser.has(userId))
      this.#startRounds()
    })
    // While the listener has no connection, this process misses changes. So every stream gets a `sync` when the
    // connection is back.
    deps.listener.onUp(() => {
      for (const stream of this.#all()) this.#unsynced.add(stream)
      this.#startRounds()
    })
  }

  /**
   * Turns a reply into a stream. The stream ends at the latest when the token expires.
   * @throws AppError 503 if too many streams are open
   */
  open(reply: FastifyReply, caller: Caller): void {
    if (this.#open >= this.#deps.maxStreams) throw tooManyStreams()
    this.#open += 1
    const streamsOfUser = this.#byUser.get(caller.userId) ?? new Set()
    this.#byUser.set(caller.userId, streamsOfUser)
    const ended = () => this.#drop(stream)
    const wire = openEventStream(reply, { until: caller.expiresAt, now: this.#deps.now, ended })
    const stream: Stream = { caller, wire, synced: false }
    streamsOfUser.add(stream)
    this.#unsynced.add(stream)
    this.#deps.count(1)
    const [oldest] = streamsOfUser
    if (streamsOfUser.size > MAX_PER_USER) this.#drop(oldest!)
    if (this.#isClosed) this.#drop(stream)
    this.#startRounds()
  }

  /** Ends the streams of a session. Without a `sessionId`, ends all streams of the user. */
  end({ userId, sessionId }: { userId: number; sessionId?: string | undefined }): void {
    for (const stream of [...(this.#byUser.get(userId) ?? [])]) {
      if (sessionId === undefined || stream.caller.sessionId === sessionId) this.#drop(stream)
    }
  }

  /** Ends all streams. If a stream opens after this call, the stream ends at once. */
  close(): void {
    this.#isClosed = true
    for (const stream of this.#all()) this.#drop(stream)
  }

  #all(): Stream[] {
    return [...this.#byUser.values()].flatMap(streams => [...streams])
  }

  #drop(stream: Stream): void {
    const { userId } = stream.caller
    const streamsOfUser = this.#byUser.get(userId)
    if (!streamsOfUser?.delete(stream)) return
    if (streamsOfUser.size === 0) this.#byUser.delete(userId)
    this.#unsynced.delete(stream)
    stream.wire.end()
    this.#open -= 1
    this.#deps.count(-1)
  }

  #startRounds(): void {
    if (this.#isRunning) return
    this.#isRunning = true
    void this.#runRounds()
  }

  async #runRounds(): Promise<void> {
    for (let failures = 0; !this.#isClosed && (this.#pending.size > 0 || this.#unsynced.size > 0); ) {
      const [changes, syncing] = [new Map(this.#pending), new Set(this.#unsynced)]
      this.#pending.clear()
      this.#unsynced.clear()
      try {
        await this.#runRound(changes, syncing)
        failures = 0
      } catch (error) {
        if (!this.#isClosed && failures === 0) {
          this.#deps.log.warn({ err: error }, 'cannot read notifications for the streams; retrying')
        }
        failures += 1
        this.#requestSync(changes, syncing)
        await delay(RETRY_MS, undefined, { ref: false })
      }
    }
    this.#isRunning = false
  }

  /**
   * Requests a `sync` for the streams of a failed round. The `sync` replaces the changes that the round did not send.
   */
  #requestSync(changes: PendingChanges, syncing: Set<Stream>): void {
    for (const userId of changes.keys()) for (const stream of this.#byUser.get(userId) ?? []) this.#unsynced.add(stream)
    for (const stream of syncing) if (this.#byUser.get(stream.caller.userId)?.has(stream)) this.#unsynced.add(stream)
  }

  async #runRound(changes: PendingChanges, syncing: Set<Stream>): Promise<void> {
    await this.#dropEndedSessions(syncing)
    const userIds = new Set([...changes.keys(), ...[...syncing].map(stream => stream.caller.userId)])
    for (const change of await readInboxChanges(this.#deps.sql, [...userIds], changes)) {
      this.#send(change, changes.has(change.userId), syncing)
    }
  }

  /**
   * Ends streams whose session has ended. A session may end after its token was checked and before its stream was
   * registered. A session may also end while the listener has no connection. In both cases `end` was not called for the
   * stream.
   */
  async #dropEndedSessions(syncing: Set<Stream>): Promise<void> {
    if (syncing.size === 0) return
    const running = await this.#deps.findRunning([...syncing].map(stream => stream.caller.sessionId))
    for (const stream of syncing) if (!running.has(stream.caller.sessionId)) this.#drop(stream)
  }

  #send({ userId, unreadCount, latestId, fresh }: InboxChange, hasChanged: boolean, syncing: Set<Stream>): void {
    const sync = formatEvent('sync', JSON.stringify({ unread_count: unreadCount, latest_id: latestId }))
    const notifications = fresh.map(json => formatEvent('notification', json)).join('')
    const unread = formatEvent('unread_count', JSON.stringify({ unread_count: unreadCount }))
    for (const stream of this.#byUser.get(userId) ?? []) {
      // A stream that opened after this round had begun gets nothing in this round. In the next round, the stream gets
      // a `sync`, which includes the changes of this round.
      if (syncing.has(stream)) stream.wire.write(sync + notifications)
      else if (stream.synced && hasChanged) stream.wire.write(notifications + unread)
      stream.synced ||= syncing.has(stream)
    }
  }
}

function tooManyStreams(): AppError {
  return new AppError(
    'unavailable',
    { fr: 'Trop de connexions. Réessayez dans un instant.', en: 'Too many connections. Try again soon.' },
    { headers: { 'retry-after': '30' } },
  )
}
