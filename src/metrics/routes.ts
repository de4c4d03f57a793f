import type { PoolStats } from '../db/pipeline.ts'
import type { Database, Statements } from '../db/sql.ts'
import type { App } from '../http/route.ts'
import type { Backlog, Expose, Gauges } from './metrics.ts'

type Reads = {
  /** Counts the reminders and game starts that are past their due time. */
  countOverdue: () => Promise<Backlog>
  /** Counts the requests and events that have not reached the connections of a pool yet. */
  countWaiting: () => Record<keyof Gauges['pools'], number>
  /** Reads the spent share of the installation's budget of wrong guesses. */
  readBudget: () => Promise<{ share: number }>
}

/**
 * Adds `/metrics`, which requires METRICS_TOKEN. The route answers even while the database is down, because an
 * operator needs the metrics in this situation too.
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
      const queues = await Promise.all([countWaitingMails(sql), countOverdue(), readBudget()]).catch(error => {
        request.log.warn(
          { err: error },
          'could not count the waiting mails, the overdue reminders and the wrong guesses',
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
        queues: queues && { mails: queues[0], reminders: queues[1] },
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

async function countWaitingMails(sql: Database): Promise<Backlog> {
  const [row] = await sql<{ waiting: number; oldest_seconds: number }>`
    select count(*) as waiting,
      coalesce(greatest(0, extract(epoch from now() - min(created_at))), 0)::float8 as oldest_seconds
    from outbox where channel = 'mail'`
  return { waiting: row!.waiting, oldestSeconds: row!.oldest_seconds }
}
