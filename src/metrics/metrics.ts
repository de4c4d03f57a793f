import { createRequire } from 'node:module'
import type { Gauge } from 'prom-client'
import type { PoolStats } from '../db/pipeline.ts'
import type { Code } from '../errors.ts'
import { registerCollected } from './collected.ts'
import { register } from './register.ts'

/**
 * The functions with which a process counts answers, codes, events and other things. These functions hide the metrics
 * library from their callers. Every label of a metric has a fixed list of possible values.
 */
export type Metrics = {
  /** @param route the pattern of the route, or undefined for an unknown path */
  countAnswer(method: string, route: string | undefined, status: number, seconds: number): void
  countRefusal(route: string | undefined, code: Code): void
  /**
   * Counts a sign-in code. The outcomes of a request are `sent` (the mail is in the outbox) and `decoy` (the address is
   * unknown). The outcomes of a guess are `spent` (the code was right), `continued` (a part of the code was right) and
   * `failed` (the guess was refused).
   */
  countCode(outcome: 'sent' | 'decoy' | 'spent' | 'continued' | 'failed'): void
  /** @param type the type of the event, or undefined if the event did not pass validation */
  countEvent(type: string | undefined, outcome: 'accepted' | 'duplicate' | 'mismatch' | 'rejected' | 'ahead'): void
  countSkippedRecipients(count: number): void
  countUndeclaredProxy(): void
  /** @param lateSeconds the seconds from the due time until a worker announced or dropped the reminder or game start */
  countDueTime(type: 'game_reminder' | 'game_started', outcome: 'told' | 'dropped', lateSeconds: number): void
  /**
   * Counts an attempt at a delivery of the outbox.
   * @param seconds the seconds since the request for the delivery
   */
  countAttempt(channel: string, outcome: string, seconds: number): void
  /** Counts a request for a code that was refused because too many mails wait. */
  countRefusedMail(mailClass: 'account' | 'signUp'): void
  /** Counts bounces that were taken back because too many addresses bounced. */
  countWithdrawnBounces(count: number): void
  /** @param change 1 when a stream opens, -1 when a stream ends */
  countStream(change: 1 | -1): void
}

const ignore = () => {}

/** Metrics that count nothing, for a process without METRICS_TOKEN. */
export const NO_METRICS: Metrics = {
  countAnswer: ignore,
  countRefusal: ignore,
  countCode: ignore,
  countEvent: ignore,
  countSkippedRecipients: ignore,
  countUndeclaredProxy: ignore,
  countDueTime: ignore,
  countAttempt: ignore,
  countRefusedMail: ignore,
  countWithdrawnBounces: ignore,
  countStream: ignore,
}

/**
 * The kinds of deliveries of the outbox, except the mails with codes. A mail about unread notifications is a digest.
 */
export const DELIVERY_CHANNELS = ['announcement', 'push', 'digest'] as const
export type DeliveryChannel = (typeof DELIVERY_CHANNELS)[number]

/** The number of waiting items, and the age of the oldest item. */
export type Backlog = { waiting: number; oldestSeconds: number }

/** The values that the route `/metrics` reads at each scrape. */
export type Gauges = {
  pools: { requests: PoolStats; reads: PoolStats; intake: PoolStats }
  /** `queues` is undefined while the database cannot be reached. `/metrics` then omits the samples of the queues. */
  queues: { mails: Backlog; reminders: Backlog; deliveries: Record<DeliveryChannel, Backlog> } | undefined
  /** The spent share of the installation's budget of wrong guesses, undefined while the database cannot be reached. */
  guessBudgetUsed: number | undefined
}

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

/**
 * Creates the metrics of one process in a new registry.
 * @param countEmbeddedRestarts counts how often the embedded PostgreSQL was started again
 * @returns `metrics` with the counting functions, and `expose`, which returns all samples in Prometheus' text format
 */
export function createMetrics(countEmbeddedRestarts: () => number = () => 0) {
  // prom-client takes long to load, and a process without METRICS_TOKEN does not need it. So only this function loads
  // prom-client.
  const client: typeof import('prom-client') = createRequire(import.meta.url)('prom-client')
  const registry = new client.Registry()
  client.collectDefaultMetrics({ register: registry })
  registerCollected(client, registry, countEmbeddedRestarts)
  const { requests, seconds, refusals, codes, events, skipped, undeclared, dueTimes, lateness, ...others } = register(
    client,
    registry,
  )
  const { attempts, delivery, refusedMails, withdrawnBounces, ...gauges } = others

  const metrics: Metrics = {
    countAnswer(method, route = 'unknown', status, elapsedSeconds) {
      const label = METHODS.includes(method) ? method : 'other'
      requests.inc({ method: label, route, status })
      seconds.observe({ method: label, route }, elapsedSeconds)
    },
    countRefusal: (route = 'unknown', code) => refusals.inc({ route, code }),
    countCode: outcome => codes.inc({ outcome }),
    countEvent: (type = 'unknown', outcome) => events.inc({ type, outcome }),
    countSkippedRecipients: count => skipped.inc(count),
    countUndeclaredProxy: () => undeclared.inc(),
    countDueTime(type, outcome, lateSeconds) {
      dueTimes.inc({ type, outcome })
      lateness.observe({ type }, Math.max(0, lateSeconds))
    },
    countAttempt(channel, outcome, elapsedSeconds) {
      attempts.inc({ channel, outcome })
      if (outcome === 'delivered') delivery.observe({ channel }, Math.max(0, elapsedSeconds))
    },
    countRefusedMail: mailClass => refusedMails.inc({ class: mailClass }),
    countWithdrawnBounces: count => withdrawnBounces.inc(count),
    countStream: change => gauges.streams.inc(change),
  }

  async function expose({ pools, queues, guessBudgetUsed }: Gauges): Promise<{ type: string; text: string }> {
    for (const [name, stats] of Object.entries(pools)) {
      for (const [state, count] of Object.entries(stats)) gauges.pool.set({ pool: name, state }, count)
    }
    gauges.up.set(queues ? 1 : 0)
    // As in `setBacklog`: without the database, the last value would look like a current value.
    if (guessBudgetUsed === undefined) gauges.guessBudget.remove()
    else gauges.guessBudget.set(guessBudgetUsed)
    setBacklog(gauges.mails, queues?.mails)
    setBacklog(gauges.reminders, queues?.reminders)
    for (const channel of DELIVERY_CHANNELS) setBacklog(gauges.deliveries, queues?.deliveries[channel], { channel })
    return { type: registry.contentType, text: await registry.metrics() }
  }

  return { metrics, expose }
}

function setBacklog(
  gauges: { waiting: Gauge; oldest: Gauge },
  now: Backlog | undefined,
  labels: Record<string, string> = {},
): void {
  if (now) {
    gauges.waiting.set(labels, now.waiting)
    gauges.oldest.set(labels, now.oldestSeconds)
  } else {
    // The database cannot be reached. If the gauges kept their last values, these values would look like current
    // values. So we remove the last values.
    gauges.waiting.remove(labels)
    gauges.oldest.remove(labels)
  }
}

export type Expose = ReturnType<typeof createMetrics>['expose']
