import { createRequire } from 'node:module'
import type { Gauge } from 'prom-client'
import type { PoolStats } from '../db/pipeline.ts'
import type { Code } from '../errors.ts'

/** The counters of a process, as plain functions, so callers need no metrics library. Labels come from closed lists. */
export type Metrics = {
  /** @param route the route's pattern; undefined for an unknown path */
  countAnswer(method: string, route: string | undefined, status: number, seconds: number): void
  countRefusal(route: string | undefined, code: Code): void
  /** `sent`: put into the outbox. `decoy`: the row of an unknown address, without a mail. */
  code(outcome: 'sent' | 'decoy' | 'spent' | 'failed'): void
  /** @param type one of the known types; undefined if the event has none */
  event(type: string | undefined, outcome: 'accepted' | 'duplicate' | 'mismatch' | 'rejected'): void
  skippedRecipients(count: number): void
  undeclaredProxy(): void
  /** @param lateSeconds how long after its due time the reminder or start fired */
  fired(type: 'game_reminder' | 'game_started', outcome: 'told' | 'dropped', lateSeconds: number): void
  /** 1 for a stream that opens, -1 for one that ends. */
  stream(change: 1 | -1): void
}

const ignore = () => {}

/** For a process without METRICS_TOKEN. */
export const NO_METRICS: Metrics = {
  countAnswer: ignore,
  countRefusal: ignore,
  code: ignore,
  event: ignore,
  skippedRecipients: ignore,
  undeclaredProxy: ignore,
  fired: ignore,
  stream: ignore,
}

/** The number of waiting items and the age of the oldest. */
export type Backlog = { waiting: number; oldestSeconds: number }

/** The values that are read at each scrape. */
export type Gauges = {
  pools: { requests: PoolStats; reads: PoolStats; intake: PoolStats }
  /** Undefined while the database cannot be reached. */
  queues: { mails: Backlog; reminders: Backlog } | undefined
}

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
const REQUEST_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const LATE_SECONDS = [0.1, 0.5, 1, 2.5, 5, 15, 60, 300, 900, 3600, 21_600]

/**
 * Creates the metrics of one process in a new registry.
 * @returns `metrics`, which count, and `expose`, which returns all samples in Prometheus' text format
 */
export function createMetrics() {
  // The library loads slowly, and most starts have no METRICS_TOKEN.
  const client: typeof import('prom-client') = createRequire(import.meta.url)('prom-client')
  const registry = new client.Registry()
  const registers = [registry]
  const counter = (name: string, help: string, labelNames: string[] = []) =>
    new client.Counter({ name: `courtside_${name}`, help, labelNames, registers })
  const gauge = (name: string, help: string, labelNames: string[] = []) =>
    new client.Gauge({ name: `courtside_${name}`, help, labelNames, registers })
  const histogram = (name: string, help: string, labelNames: string[], buckets: number[]) =>
    new client.Histogram({ name: `courtside_${name}`, help, labelNames, buckets, registers })

  client.collectDefaultMetrics({ register: registry })
  const requests = counter('http_requests_total', 'Answers by route and status', ['method', 'route', 'status'])
  const seconds = histogram(
    'http_request_duration_seconds',
    'Time until the answer',
    ['method', 'route'],
    REQUEST_SECONDS,
  )
  const refusals = counter('refusals_total', 'Answers with an error, by code', ['route', 'code'])
  const codes = counter('codes_total', 'One-time codes by outcome', ['outcome'])
  const events = counter('events_total', 'Reported events by outcome', ['type', 'outcome'])
  const skipped = counter('recipients_skipped_total', 'Unknown users named in events')
  const undeclared = counter('undeclared_forwarded_total', 'Forwarded headers from peers not in TRUST_PROXY')
  const fired = counter('reminders_total', 'Reminders and game starts that fired', ['type', 'outcome'])
  const lateness = histogram(
    'reminder_lateness_seconds',
    'Time between due time and firing of reminders and game starts',
    ['type'],
    LATE_SECONDS,
  )
  const streams = gauge('streams_open', 'Open notification streams')
  const pool = gauge('pool_connections', 'Connections to the database by state; in state waiting: statements', [
    'pool',
    'state',
  ])
  const up = gauge('database_up', 'Whether the database answered at this scrape')
  const mails = {
    waiting: gauge('mails_waiting', 'Mails in the outbox, of all processes; absent while the database is down'),
    oldest: gauge('mails_oldest_seconds', 'Age of the oldest waiting mail, 0 without any'),
  }
  const reminders = {
    waiting: gauge('reminders_overdue', 'Reminders and game starts that are due and not yet fired'),
    oldest: gauge(
      'reminders_overdue_oldest_seconds',
      'How long the oldest reminder or start is overdue, 0 without any',
    ),
  }

  const metrics: Metrics = {
    countAnswer(method, route = 'unknown', status, elapsed) {
      const label = METHODS.includes(method) ? method : 'other'
      requests.inc({ method: label, route, status })
      seconds.observe({ method: label, route }, elapsed)
    },
    countRefusal: (route = 'unknown', code) => refusals.inc({ route, code }),
    code: outcome => codes.inc({ outcome }),
    event: (type = 'unknown', outcome) => events.inc({ type, outcome }),
    skippedRecipients: count => skipped.inc(count),
    undeclaredProxy: () => undeclared.inc(),
    fired(type, outcome, late) {
      fired.inc({ type, outcome })
      lateness.observe({ type }, Math.max(0, late))
    },
    stream: change => streams.inc(change),
  }

  async function expose({ pools, queues }: Gauges): Promise<{ type: string; text: string }> {
    for (const [name, stats] of Object.entries(pools)) {
      for (const [state, count] of Object.entries(stats)) pool.set({ pool: name, state }, count)
    }
    up.set(queues ? 1 : 0)
    setBacklog(mails, queues?.mails)
    setBacklog(reminders, queues?.reminders)
    return { type: registry.contentType, text: await registry.metrics() }
  }

  return { metrics, expose }
}

function setBacklog(gauges: { waiting: Gauge; oldest: Gauge }, now: Backlog | undefined): void {
  if (now) {
    gauges.waiting.set(now.waiting)
    gauges.oldest.set(now.oldestSeconds)
  } else {
    // An old value would look like a current one.
    gauges.waiting.remove()
    gauges.oldest.remove()
  }
}

export type Expose = ReturnType<typeof createMetrics>['expose']
