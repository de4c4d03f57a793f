import type { FastifyRequest } from 'fastify'
import { isMigrated } from '../db/migrate.ts'
import { requireReplyInTime } from '../db/reply-limit.ts'
import type { Query } from '../db/sql.ts'
import { unavailable } from '../errors.ts'
import type { App } from './route.ts'
import { Type } from './type.ts'

const Ready = Type.Object({ status: Type.Literal('ready'), warning: Type.Optional(Type.String()) })

/**
 * Adds two routes without access control. `/healthz` reports that the process is alive. `/readyz` reports whether the
 * database is reachable and migrated, and whether this process takes new requests.
 * @param findWarnings returns what the operator should know. A request that does not come from this machine can be any
 *   stranger's
 */
export function healthRoutes(
  app: App,
  { readSql, stopping }: { readSql: Query; stopping: AbortSignal },
  findWarnings: (request: FastifyRequest) => Promise<string[]>,
): void {
  app.route({
    method: 'GET',
    url: '/healthz',
    config: { access: 'public' },
    schema: { hide: true, response: { 200: Type.Object({ status: Type.Literal('ok') }) } },
    handler: async () => ({ status: 'ok' as const }),
  })

  app.route({
    method: 'GET',
    url: '/readyz',
    config: { access: 'public' },
    schema: { hide: true, response: { 200: Ready } },
    handler: async request => {
      // Without a cause, the 503 is not logged. Load balancers request this path every second.
      if (stopping.aborted) throw unavailable(undefined)
      const check = async () => {
        if (!(await isMigrated(readSql))) throw unavailable('the database is not migrated')
        return findWarnings(request)
      }
      const warnings = await requireReplyInTime(check())
      return { status: 'ready' as const, ...(warnings.length > 0 && { warning: warnings.join('; ') }) }
    },
  })
}
