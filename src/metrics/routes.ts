import type { PoolStats } from '../db/pipeline.ts'
import { requireReplyInTime } from '../db/reply-limit.ts'
import type { Database, Statements } from '../db/sql.ts'
import type { App } from '../http/route.ts'
import { MAIL_CLASSES } from '../limits/mail-backlog.ts'
import { type Backlog, DELIVERY_CHANNELS, type DeliveryChannel, type Expose, type Gauges } from './metrics.ts'

type Reads = {
  /** Counts the reminders and game starts that are past their due time. */
  countOverdue: () => Promise<Backlog>
  /** Counts the requests and events that have not reached the connections of a pool yet. */
  countWaiting: () => Record<keyof Gauges['pools'], number>
  /** Reads the spent share of the installation's budget of wrong guesses. */
  readBudget: () => Promise<{ share: number }>
}

/**
 * Adds `/metrics`, which requires METRICS_TOKEN. The route answers even while the database is down or silent, because
 * an operator needs the metrics in this situation too.
 */
export function metricsRoutes(
  app: App,
  { sql, readSql, intakeSql }: { sql: Database; readSql: Statements; intakeSql: Database },
  expose: Expose,
  { countOverdue, countWaiting, readBudget }: Reads,
): void {
  app.route({
    method: 'GET',
    url: '/metrics',
    config: { access: 'operator' },
    schema: { hide: true },
    handler: async (request, reply) => {
      const reads = Promise.all([countDeliveries(sql), countOverdue(), readBudget()])
      const queues = await requireReplyInTime(reads).catch(error => {
        request.log.warn(
          { err: error },
          'could not count the waiting deliveries, the overdue reminders and the wrong guesses',
        )
        return undefined
      })
      const waiting = countWaiting()
      const { type, text } = await expose({
        pools: {
          requests: addWaiting(sql.pipeline.stats(), waiting.requests),
          reads: addWaiting(readSql.pipeline.stats(), waiting.reads),
          intake: addWaiting(readPoolStats(intakeSql), waiting.intake),
        },
        queues: queues && { ...queues[0], reminders: queues[1] },
        guessBudgetUsed: queues?.[2].share,
      })
      return reply.type(type).send(text)
    },
  })
}

/**
 * Returns the statistics of the connection pool of the intake. The intake runs only transactions, and transactions use
 * this pool instead of the pipeline.
 */
function readPoolStats({ pool }: Database): PoolStats {
  return { total: pool.totalCount, idle: pool.idleCount, waiting: pool.waitingCount }
}

function addWaiting(stats: PoolStats, waiting: number): PoolStats {
  return { ...stats, waiting: stats.waiting + waiting }
}

type Waiting = { channel: DeliveryChannel | 'mail'; waiting: number; oldest_seconds: number }

/** If the pushes or digests of fewer users fail, the reason may be their devices and addresses. */
const MIN_USERS = 5

/**
 * Counts the rows of the outbox by channel. A delivery that waits for the end of quiet hours does not count, so only
 * deliveries count that could leave or have failed.
 *
 * A user chooses the endpoint of a push and the address of a digest. One user must not be able to raise an alert. So
 * pushes and digests that were tried count only from the fifth user on, in the order of their age. All other deliveries
 * always count.
 */
async function countDeliveries(sql: Database) {
  const rows = await sql<Waiting>`
    with delivery as (
      select case when channel = 'mail' and class > ${MAIL_CLASSES.signUp} then 'digest' else channel end as channel,
        network, attempts > 0 as is_tried, created_at, due
      from outbox
      where ready or attempts > 0 or code_id is not null
    ), receiver as (
      select channel, count(*) as waiting, is_tried and channel in ('push', 'digest') as is_faulty,
        min(case when is_tried or channel = 'mail' then created_at else due end) as since
      from delivery
      group by channel, network, is_tried
    ), ranked as (
      select *, row_number() over (partition by channel, is_faulty order by since) as rank from receiver
    )
    select channel, sum(waiting)::bigint as waiting,
      greatest(0, extract(epoch from now() - min(since) filter (where not is_faulty or rank >= ${MIN_USERS}))
      )::float8 as oldest_seconds
    from ranked
    group by channel`
  const find = (name: Waiting['channel']): Backlog => {
    const row = rows.find(({ channel }) => channel === name)
    return { waiting: row?.waiting ?? 0, oldestSeconds: row?.oldest_seconds ?? 0 }
  }
  const deliveries = Object.fromEntries(DELIVERY_CHANNELS.map(channel => [channel, find(channel)]))
  return { mails: find('mail'), deliveries: deliveries as Record<DeliveryChannel, Backlog> }
}
