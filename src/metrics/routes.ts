import type { Database } from '../db/sql.ts'
import type { App } from '../http/route.ts'
import type { Expose, Gauges } from './metrics.ts'

/** `/metrics`, for who brings METRICS_TOKEN. It answers while the database is down too: then it is looked at most. */
export function metricsRoutes(app: App, sql: Database, expose: Expose): void {
  app.route({
    method: 'GET',
    url: '/metrics',
    config: { access: 'operator' },
    schema: { hide: true },
    handler: async (request, reply) => {
      const mails = await mailsWaiting(sql).catch(error => {
        request.log.warn({ err: error }, 'the outbox could not be counted')
        return undefined
      })
      const { totalCount: total, idleCount: idle, waitingCount: waiting } = sql.pool
      const { type, text } = await expose({ pool: { total, idle, waiting }, mails })
      return reply.type(type).send(text)
    },
  })
}

async function mailsWaiting(sql: Database): Promise<Gauges['mails']> {
  const [row] = await sql<{ waiting: number; oldest_seconds: number }>`
    select count(*) as waiting,
      coalesce(greatest(0, extract(epoch from now() - min(created_at))), 0)::float8 as oldest_seconds
    from graphile_worker.jobs
    where task_identifier = 'send_code'`
  return { waiting: row!.waiting, oldestSeconds: row!.oldest_seconds }
}
