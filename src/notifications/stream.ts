import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger, FastifyReply } from 'fastify'
import { HINT_CHANNEL } from '../db/channels.ts'
import { readHints } from '../db/hints.ts'
import type { Listener } from '../db/listener.ts'
import type { Query } from '../db/sql.ts'
import { AppError } from '../errors.ts'
import { openEventStream } from '../http/event-stream.ts'
import { readInbox, readInboxChanges } from './inbox-changes.ts'
import { MAX_COMMIT_DELAY_MS } from './inbox-cursor.ts'
import { InboxReader, type Stream } from './inbox-reader.ts'

/**
 * The maximum number of open streams of one user in one process. If the user opens another stream, the oldest stream
 * ends.
 */
const MAX_PER_USER = 5

const RETRY_MS = 250

type Deps = {
  sql: Query
  listener: Listener
  /** The maximum number of open streams of this process. */
  maxStreams: number
  /** If a user has received no event for this time, the process reads the user's inbox without a hint. */
  maxQuietMs: number
  log: FastifyBaseLogger
  now: () => Date
  /** Returns those session ids whose sessions have not ended. */
  findRunning: (sessionIds: string[]) => Promise<Set<string>>
  /** Changes the number of open streams: by 1 when a stream opens, by -1 when a stream ends. */
  count: (change: 1 | -1) => void
}

/**
 * Serves the live streams of this process. A hint names users whose inbox has changed. Sends changes in rounds, one
 * round at a time. A round reads the changes of all users whom hints have named, with one statement, and sends them.
 * Hints that arrive during a round wait for the next round.
 *
 * So a burst of changes needs few statements. Hints about users without a stream are ignored. Each stream receives
 * changes in the order in which the changes become visible in the database. A hint may be lost, because the process
 * that wrote the change can die before it sends the hint. The next round for the user then sends the change.
 */
export class Streams {
  readonly #deps: Deps
  readonly #readers = new Map<number, InboxReader>()
  /** The users for whom the next round reads changes. */
  readonly #pending = new Set<number>()
  /** The streams to which the next round sends a `sync`. */
  readonly #unsynced = new Set<Stream>()
  readonly #timer: NodeJS.Timeout
  #isRunning = false
  #isClosed = false
  #open = 0

  constructor(deps: Deps) {
    this.#deps = deps
    deps.listener.on(HINT_CHANNEL, payload => this.#request(readHints(payload).userIds))
    // While the listener has no connection, this process misses hints and ends of sessions. So every stream gets a
    // `sync` when the connection is back.
    deps.listener.onUp(() => {
      for (const stream of this.#all()) this.#unsynced.add(stream)
      this.#request(this.#readers.keys())
    })
    this.#timer = setInterval(() => this.#requestQuiet(), deps.maxQuietMs).unref()
  }

  /**
   * Turns a reply into a stream. The stream ends at the latest when the token expires.
   * @throws AppError 503 if too many streams are open
   */
  open(reply: FastifyReply, caller: Stream['caller']): void {
    if (this.#open >= this.#deps.maxStreams) throw tooManyStreams()
    this.#open += 1
    const reader = this.#readers.get(caller.userId) ?? new InboxReader(caller.userId)
    this.#readers.set(caller.userId, reader)
    const ended = () => this.#drop(stream)
    const wire = openEventStream(reply, { until: caller.expiresAt, now: this.#deps.now, ended })
    const stream: Stream = { caller, wire, isSynced: false }
    reader.streams.add(stream)
    this.#unsynced.add(stream)
    this.#deps.count(1)
    const [oldest] = reader.streams
    if (reader.streams.size > MAX_PER_USER) this.#drop(oldest!)
    if (this.#isClosed) this.#drop(stream)
    this.#startRounds()
  }

  /** Ends the streams of a session. Without a `sessionId`, ends all streams of the user. */
  end({ userId, sessionId }: { userId: number; sessionId?: string | undefined }): void {
    for (const stream of [...(this.#readers.get(userId)?.streams ?? [])]) {
      if (sessionId === undefined || stream.caller.sessionId === sessionId) this.#drop(stream)
    }
  }

  /** Ends all streams. If a stream opens after this call, the stream ends immediately. */
  close(): void {
    this.#isClosed = true
    clearInterval(this.#timer)
    for (const stream of this.#all()) this.#drop(stream)
  }

  #all(): Stream[] {
    return [...this.#readers.values()].flatMap(({ streams }) => [...streams])
  }

  #drop(stream: Stream): void {
    const { userId } = stream.caller
    const reader = this.#readers.get(userId)
    if (!reader?.streams.delete(stream)) return
    if (reader.streams.size === 0) this.#readers.delete(userId)
    this.#unsynced.delete(stream)
    stream.wire.end()
    this.#open -= 1
    this.#deps.count(-1)
  }

  /** Requests a round for those of the users who have a stream. */
  #request(userIds: Iterable<number>): void {
    for (const userId of userIds) if (this.#readers.has(userId)) this.#pending.add(userId)
    this.#startRounds()
  }

  #requestQuiet(): void {
    const quietSince = performance.now() - this.#deps.maxQuietMs
    const quiet = [...this.#readers.values()].filter(({ cursor }) => cursor && cursor.lastEventAt <= quietSince)
    this.#request(quiet.map(({ userId }) => userId))
  }

  #startRounds(): void {
    if (this.#isRunning) return
    this.#isRunning = true
    void this.#runRounds()
  }

  async #runRounds(): Promise<void> {
    for (let failures = 0; !this.#isClosed && (this.#pending.size > 0 || this.#unsynced.size > 0); ) {
      const [pending, syncing] = [new Set(this.#pending), new Set(this.#unsynced)]
      this.#pending.clear()
      this.#unsynced.clear()
      try {
        await this.#runRound(pending, syncing)
        failures = 0
      } catch (error) {
        if (!this.#isClosed && failures === 0) {
          this.#deps.log.warn({ err: error }, 'cannot read notifications for the streams; retrying')
        }
        failures += 1
        for (const userId of pending) this.#pending.add(userId)
        for (const stream of this.#all()) if (syncing.has(stream)) this.#unsynced.add(stream)
        await delay(RETRY_MS, undefined, { ref: false })
      }
    }
    this.#isRunning = false
  }

  async #runRound(pending: Set<number>, syncing: Set<Stream>): Promise<void> {
    // A reader without a cursor will get its first `sync`. The `sync` is read after the hint, so it includes the
    // change.
    const readers = [...pending].flatMap(userId => this.#readers.get(userId) ?? []).filter(({ cursor }) => cursor)
    await this.#dropEndedSessions(syncing)
    await this.#sync(syncing)
    const startedAt = performance.now()
    const cursors = readers.map(({ cursor }) => cursor!)
    const changes = await readInboxChanges(this.#deps.sql, cursors)
    for (const reader of readers) reader.send(changes.get(reader.userId)!, startedAt)
    for (const cursor of cursors) cursor.raiseFloor(startedAt)
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

  async #sync(syncing: Set<Stream>): Promise<void> {
    const { sql, now } = this.#deps
    const [startedAt, olderThan] = [performance.now(), new Date(now().getTime() - MAX_COMMIT_DELAY_MS)]
    const readers = new Set([...syncing].flatMap(({ caller }) => this.#readers.get(caller.userId) ?? []))
    await Promise.all(
      Array.from(readers, async reader =>
        reader.sync(await readInbox(sql, reader.userId, olderThan), syncing, startedAt),
      ),
    )
  }
}

function tooManyStreams(): AppError {
  return new AppError(
    'unavailable',
    { fr: 'Trop de connexions. Réessayez dans un instant.', en: 'Too many connections. Try again soon.' },
    { headers: { 'retry-after': '30' } },
  )
}
