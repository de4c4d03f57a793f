import { createRequire } from 'node:module'
import type { Gauge, Registry } from 'prom-client'
import type { PoolStats } from '../db/pipeline.ts'
import type { Code } from '../errors.ts'
import { registerCollected } from './collected.ts'

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
  countStream: ignore,
}

/** The number of waiting items, and the age of the oldest item. */
export type Backlog = { waiting: number; oldestSeconds: number }

/** The values that the route `/metrics` reads at each scrape. */
export type Gauges = {
  pools: { requests: PoolStats; reads: PoolStats; intake: PoolStats }
  /** `queues` is undefined while the database cannot be reached. `/metrics` then omits the samples of the queues. */
  queues: { mails: Backlog; reminders: Backlog } | undefined
  /** The spent share of the installation's budget of wrong guesses, undefined while the database cannot be reached. */
  guessBudgetUsed: number | undefined
}

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
const REQUEST_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const DELIVERY_SECONDS = [0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900]
const LATE_SECONDS = [0.1, 0.5, 1, 2.5, 5, 15, 60, 300, 900, 3600, 21_600]

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
  const { attempts, delivery, refusedMails, ...gauges } = others

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
    return { type: registry.contentType, text: await registry.metrics() }
  }

  return { metrics, expose }
}

/** Registers all metrics of the service. */
function register(client: typeof import('prom-client'), registry: Registry) {
  const registers = [registry]
  const counter = (name: string, help: string, labelNames: string[] = []) =>
    new client.Counter({ name: `courtside_${name}`, help, labelNames, registers })
  const gauge = (name: string, help: string, labelNames: string[] = []) =>
    new client.Gauge({ name: `courtside_${name}`, help, labelNames, registers })
  const histogram = (name: string, help: string, labelNames: string[], buckets: number[]) =>
    new client.Histogram({ name: `courtside_${name}`, help, labelNames, buckets, registers })
  return {
    requests: counter('http_requests_total', 'Answers by route and status', ['method', 'route', 'status']),
    seconds: histogram(
      'http_request_duration_seconds',
      'Time until the end of the answer',
      ['method', 'route'],
      REQUEST_SECONDS,
    ),
    refusals: counter('refusals_total', 'Answers with an error, by error code', ['route', 'code']),
    codes: counter('codes_total', 'One-time codes by outcome', ['outcome']),
    events: counter('events_total', 'Reported events by outcome', ['type', 'outcome']),
    skipped: counter('recipients_skipped_total', 'Recipients in events who have no account and are no guests'),
    undeclared: counter(
      'undeclared_forwarded_total',
      'Requests that look forwarded and whose peer is not in TRUST_PROXY',
    ),
    dueTimes: counter('reminders_total', 'Reminders and game starts that became due, by outcome', ['type', 'outcome']),
    lateness: histogram(
      'reminder_lateness_seconds',
      'Time between the due time of a reminder or game start and its announcement',
      ['type'],
      LATE_SECONDS,
    ),
    attempts: counter('delivery_attempts_total', 'Attempts at deliveries of the outbox', ['channel', 'outcome']),
    delivery: histogram(
      'delivery_duration_seconds',
      'Time from the request for a delivery until another server took it',
      ['channel'],
      DELIVERY_SECONDS,
    ),
    refusedMails: counter('mail_backlog_refusals_total', 'Requests refused because too many mails wait', ['class']),
    guessBudget: gauge('guess_budget_used_ratio', 'Spent share of the wrong guesses of the installation, from 0 to 1'),
    streams: gauge('streams_open', 'Open notification streams'),
    pool: gauge('pool_connections', 'Database connections by state; the state `waiting` counts waiting statements', [
      'pool',
      'state',
    ]),
    up: gauge('database_up', 'Whether the database answered at this scrape'),
    mails: {
      waiting: gauge('mails_waiting', 'Mails in the outbox of all processes; absent while the database is down'),
      oldest: gauge('mails_oldest_seconds', 'Age of the oldest waiting mail; 0 if no mail waits'),
    },
    reminders: {
      waiting: gauge('reminders_overdue', 'Reminders and game starts that are due but not yet announced'),
      oldest: gauge(
        'reminders_overdue_oldest_seconds',
        'Time since the due time of the oldest overdue reminder or game start; 0 if none is overdue',
      ),
    },
  }
}

function setBacklog(gauges: { waiting: Gauge; oldest: Gauge }, now: Backlog | undefined): void {
  if (now) {
    gauges.waiting.set(now.waiting)
    gauges.oldest.set(now.oldestSeconds)
  } else {
    // The database cannot be reached. If the gauges kept their last values, these values would look like current
    // values. So we remove the last values.
    gauges.waiting.remove()
    gauges.oldest.remove()
  }
}

export type Expose = ReturnType<typeof createMetrics>['expose']
