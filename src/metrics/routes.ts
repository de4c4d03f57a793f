import type { PoolStats } from '../db/pipeline.ts'
import type { Database, Statements } from '../db/sql.ts'
import type { App } from '../http/route.ts'
import type { Expose, Waiting } from './metrics.ts'

/**
 * `/metrics`, for who brings METRICS_TOKEN. It answers while the database is down too: then it is looked at most.
 * @param overdue asks how many reminders and starts wait beyond their time
 */
export function metricsRoutes(
  app: App,
  { sql, readSql, intakeSql }: { sql: Database; readSql: Statements; intakeSql: Database },
  expose: Expose,
  overdue: () => Promise<Waiting>,
): void {
  app.route({
    method: 'GET',
    url: '/metrics',
    config: { access: 'operator' },
    schema: { hide: true },
    handler: async (request, reply) => {
      const queues = await Promise.all([mailsWaiting(sql), overdue()]).catch(error => {
        request.log.warn({ err: error }, 'what waits could not be counted')
        return undefined
      })
      const { type, text } = await expose({
        pools: { requests: sql.pipeline.stats(), reads: readSql.pipeline.stats(), intake: poolUse(intakeSql) },
        queues: queues && { mails: queues[0], reminders: queues[1] },
      })
      return reply.type(type).send(text)
    },
  })
}

/** The intake has nothing but transactions. */
function poolUse({ pool }: Database): PoolStats {
  return { total: pool.totalCount, idle: pool.idleCount, waiting: pool.waitingCount }
}

async function mailsWaiting(sql: Database): Promise<Waiting> {
  const [row] = await sql<{ waiting: number; oldest_seconds: number }>`
    select count(*) as waiting,
      coalesce(greatest(0, extract(epoch from now() - min(created_at))), 0)::float8 as oldest_seconds
    from graphile_worker.jobs
    where task_identifier = 'send_code'`
  return { waiting: row!.waiting, oldestSeconds: row!.oldest_seconds }
}
