import type { Registry } from 'prom-client'

const REQUEST_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const DELIVERY_SECONDS = [0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900]
const LATE_SECONDS = [0.1, 0.5, 1, 2.5, 5, 15, 60, 300, 900, 3600, 21_600]

/** Registers all metrics of the service. */
export function register(client: typeof import('prom-client'), registry: Registry) {
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
    withdrawnBounces: counter(
      'digest_bounces_withdrawn_total',
      'Bounces that do not count, because the mail server refused too many known addresses',
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
    deliveries: {
      waiting: gauge('deliveries_waiting', 'Other deliveries of the outbox that could leave or have failed', [
        'channel',
      ]),
      oldest: gauge(
        'deliveries_oldest_seconds',
        'Time for which the oldest of these deliveries has waited; 0 if none waits',
        ['channel'],
      ),
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
