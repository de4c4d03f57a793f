import type { FastifyBaseLogger } from 'fastify'
import type { Query } from '../db/sql.ts'
import type { Delivery } from './outbox.ts'

/**
 * The result of one attempt. With `retryAt`, the worker tries again at that time. `isReleased` means that `deliver` has
 * deleted or deferred the row itself, in its own statement. The worker then forgets the row.
 */
export type Attempt = { outcome: string; retryAt?: Date; isReleased?: true }

/** A kind of delivery, such as `mail`, with its own rows in the outbox and its own worker. */
export type Channel = {
  name: string
  classes: readonly number[]
  /** Returns the class of a delivery after a failed attempt in the class `failed`. */
  findRetryClass(failed: number): number
  /** The maximum number of deliveries that run at the same time. */
  places: number
  /**
   * The maximum of the random wait before each attempt. Mails need the wait. Without it, an attacker could distinguish
   * mails from decoys by the load of the process.
   */
  maxStartDelayMs?: number
  /** Makes one attempt. If it throws, the worker tries again after 3 s, then after 7 s, then every 20 s. */
  deliver(delivery: Delivery): Promise<Attempt>
  /** Runs each second, before rows are claimed. */
  prepare?(sql: Query): Promise<void>
}

/** An attempt, with the seconds since the request for the delivery. */
export type ObservedAttempt = { channel: string; class: number; outcome: string; seconds: number; isFirst: boolean }

export type WorkerDependencies = {
  log: FastifyBaseLogger
  now: () => Date
  observe(attempt: ObservedAttempt): void
}

/** Returns the wait before the next attempt: 3 s, then 7 s, then 20 s each time. */
export function computeBackoffMs(attempts: number): number {
  return Math.min(20, Math.round(Math.exp(attempts))) * 1_000
}
