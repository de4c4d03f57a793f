import { isMigrated } from '../db/migrate.ts'
import type { Database } from '../db/sql.ts'
import type { UndeclaredProxyWatch } from './client-address.ts'
import type { App } from './route.ts'

/** `/healthz`: the process is alive. `/readyz`: its database is reachable and migrated. Neither needs a token. */
export function healthRoutes(app: App, sql: Database, undeclaredProxy: UndeclaredProxyWatch): void {
  app.route({
    method: 'GET',
    url: '/healthz',
    config: { access: 'public' },
    schema: { hide: true },
    handler: async () => ({ status: 'ok' }),
  })

  app.route({
    method: 'GET',
    url: '/readyz',
    config: { access: 'public' },
    schema: { hide: true },
    handler: async (_request, reply) => {
      const migrated = await isMigrated(sql)
      if (!migrated) reply.code(503).header('retry-after', '5')
      return {
        status: migrated ? 'ready' : 'not migrated',
        ...(undeclaredProxy.seen > 0 && {
          warning: `${undeclaredProxy.seen} request(s) with a forwarded header came from a peer that is not in TRUST_PROXY`,
        }),
      }
    },
  })
}
