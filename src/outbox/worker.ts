import { setTimeout as delay } from 'node:timers/promises'
import type { Query } from '../db/sql.ts'
import { describeError } from '../log.ts'
import { type Loop, startLoop } from '../loop.ts'
import { type Attempt, type Channel, computeBackoffMs, type WorkerDependencies } from './channel.ts'
import * as outbox from './outbox.ts'
import { Places } from './places.ts'
import { createStartDelay } from './start-delay.ts'
import { TakeOver } from './take-over.ts'

const LEASE_MS = 10_000
const RENEW_MS = 3_000
/** A delivery begins only if its lease lasts at least this long. */
const MIN_LEASE_LEFT_MS = 3_000
const POLL_MS = 1_000
const RETRY_MS = 250
const BATCH_SIZE = 1_000
// How long `stop` waits for running deliveries. The whole shutdown may take 10 s.
const FINISH_MS = 7_000
const FAILED = 'a delivery failed and will be tried again'

/** A held row. `until` is the end of its lease by the monotonic clock of this process. */
type Lease = { id: number; until: number }

/**
 * Delivers the rows of one channel of the outbox, until it is stopped. Each row is delivered at least once. If a worker
 * is killed, its leases lapse after 10 s, and another worker delivers the rows again. If a statement fails, the loop
 * that sent it continues.
 */
export class Worker {
  readonly #sql: Query
  readonly #channel: Channel
  readonly #deps: WorkerDependencies
  readonly #places: Places
  readonly #waitToStart: (() => Promise<void>) | undefined
  readonly #lastNetworks: Map<number, Buffer>
  readonly #held = new Map<string, Lease>()
  readonly #running = new Set<Promise<void>>()
  readonly #stopping = new AbortController()
  #isClosing = false
  /** Whether rows may wait that the last claim did not take. */
  #mayHaveMore = false
  #finished: outbox.Finished[] = []
  readonly #takeOver = new TakeOver()
  #stopped: Promise<void> | undefined
  readonly #loops: Loop[]
  /** Makes the worker claim rows immediately. */
  readonly wake: () => void
  readonly #flush: () => void

  constructor(sql: Query, channel: Channel, deps: WorkerDependencies) {
    this.#sql = sql
    this.#channel = channel
    this.#deps = deps
    const { places, maxStartDelayMs } = channel
    this.#places = new Places(places, maxStartDelayMs !== undefined)
    if (maxStartDelayMs !== undefined) this.#waitToStart = createStartDelay(maxStartDelayMs, this.#stopping.signal)
    this.#lastNetworks = new Map(channel.classes.map(each => [each, Buffer.alloc(0)]))
    const claims = this.#repeat(POLL_MS, () => this.#claim())
    const finishes = this.#repeat(RENEW_MS, () => this.#finish())
    const others = [this.#repeat(RENEW_MS, () => this.#renew()), this.#repeat(POLL_MS, () => this.#prepareRows())]
    this.wake = claims.wake
    this.#flush = finishes.wake
    this.#loops = [claims, finishes, ...others]
  }

  /** Stops the worker. It claims no more rows, and waits up to 7 s for running deliveries. */
  stop(): Promise<void> {
    this.#stopped ??= this.#close()
    return this.#stopped
  }

  async #close(): Promise<void> {
    this.#stopping.abort()
    this.#places.open()
    await Promise.race([Promise.allSettled(this.#running), delay(FINISH_MS, undefined, { ref: false })])
    this.#isClosing = true
    for (const { wake } of this.#loops) wake()
    const finished = Promise.all(this.#loops.map(loop => loop.ended)).then(() => this.#finish())
    await Promise.race([finished.catch(() => {}), delay(1_000, undefined, { ref: false })])
  }

  #repeat(everyMs: number, work: () => Promise<boolean>): Loop {
    return startLoop(everyMs, work, {
      isOver: () => this.#isClosing,
      onFailure: error => this.#deps.log.error({ err: error }, 'the outbox cannot be read or changed; retrying'),
    })
  }

  async #claim(): Promise<boolean> {
    // If a worker may claim many rows, it claims several rows at a time, which costs fewer statements.
    const limit = this.#places.maxClaimed - this.#held.size
    if (limit < Math.max(1, this.#places.maxClaimed / 8) || this.#stopping.signal.aborted) {
      this.#mayHaveMore = true
      return false
    }
    const sentAt = performance.now()
    const rows = await outbox.claim(this.#sql, {
      channel: this.#channel.name,
      limit,
      lastNetworks: this.#lastNetworks,
      lapsedBefore: this.#takeOver.lapsedBefore,
    })
    for (const row of rows) {
      this.#lastNetworks.set(row.class, row.network)
      this.#held.set(row.lease, { id: row.id, until: sentAt + LEASE_MS })
      const run = this.#run(row)
      this.#running.add(run)
      void run.finally(() => this.#running.delete(run))
    }
    // Another worker may have locked some of the rows, so a claim of fewer rows does not prove that none are left.
    this.#mayHaveMore = rows.length > 0
    return rows.length === limit
  }

  /** Waits for a random moment and for a place, delivers the row, and adds the result to the finished rows. */
  async #run(row: outbox.Delivery): Promise<void> {
    const { signal } = this.#stopping
    await this.#waitToStart?.()
    await this.#places.take(row.class)
    try {
      while (!signal.aborted && this.#leaseLeftMs(row) < MIN_LEASE_LEFT_MS) await delay(RETRY_MS)
      // When this worker stops, it gives the rows back that it has not begun to deliver.
      const attempt = !signal.aborted && this.#held.has(row.lease) ? await this.#attempt(row) : undefined
      if (attempt?.isReleased) {
        this.#held.delete(row.lease)
        if (this.#mayHaveMore) this.wake()
      } else {
        const { id, lease, attempts } = row
        this.#finished.push(
          attempt
            ? { id, class: attempt.nextClass, lease, attempts, due: attempt.retryAt }
            : { id, class: row.class, lease, attempts: attempts - 1, due: this.#deps.now() },
        )
      }
    } finally {
      this.#places.release()
      this.#flush()
    }
  }

  /** Makes one attempt. `nextClass` is the class of the next attempt if this one has failed. */
  async #attempt(row: outbox.Delivery): Promise<Attempt & { nextClass: number }> {
    const { log, now, observe } = this.#deps
    const channel = this.#channel.name
    let nextClass = row.class
    const isExpired = row.deadline !== null && row.deadline <= now()
    const attempt: Attempt = isExpired
      ? { outcome: 'expired' }
      : await this.#channel.deliver(row).catch(error => {
          nextClass = this.#channel.findRetryClass(row.class)
          log.warn({ channel, id: row.id, attempt: row.attempts, ...describeError(error) }, FAILED)
          return { outcome: 'failed', retryAt: new Date(now().getTime() + computeBackoffMs(row.attempts)) }
        })
    const seconds = (now().getTime() - row.created_at.getTime()) / 1000
    observe({ channel, class: row.class, outcome: attempt.outcome, seconds, isFirst: row.attempts === 1 })
    return { ...attempt, nextClass }
  }

  /** Returns the time until the lease ends, or infinity if another worker has taken the row over. */
  #leaseLeftMs({ lease }: outbox.Delivery): number {
    return (this.#held.get(lease)?.until ?? Number.POSITIVE_INFINITY) - performance.now()
  }

  async #finish(): Promise<boolean> {
    const rows = this.#finished.slice(0, BATCH_SIZE)
    if (rows.length === 0) return false
    const kept = await outbox.finish(this.#sql, rows, this.#deps.now())
    this.#finished = this.#finished.slice(rows.length)
    for (const { lease } of rows) this.#held.delete(lease)
    const lost = rows.filter(({ lease }) => !kept.has(lease)).length
    if (lost > 0) this.#deps.log.warn({ lost }, 'another worker had taken over deliveries of this worker')
    if (this.#mayHaveMore) this.wake()
    return this.#finished.length > 0
  }

  async #renew(): Promise<boolean> {
    const sentAt = performance.now()
    const leases = [...this.#held].map(([lease, { id }]) => ({ id, lease }))
    if (leases.length === 0) return false
    const renewed = await outbox.renew(this.#sql, leases)
    for (const { id, lease } of leases) {
      if (renewed.has(lease)) this.#held.set(lease, { id, until: sentAt + LEASE_MS })
      else this.#held.delete(lease)
    }
    return false
  }

  /** Marks rows as ready whose due time has come. */
  async #prepareRows(): Promise<boolean> {
    const { marked, endedAt } = await outbox.markReady(this.#sql, this.#deps.now(), BATCH_SIZE).catch(error => {
      this.#takeOver.recordFailure()
      throw error
    })
    this.#takeOver.recordSuccess(endedAt)
    this.wake()
    await this.#channel.prepare?.(this.#sql)
    return marked === BATCH_SIZE
  }
}
