import { isMigrated } from '../db/migrate.ts'
import type { Query } from '../db/sql.ts'
import { unavailable } from '../errors.ts'
import type { UndeclaredProxyWatch } from './client-address.ts'
import type { App } from './route.ts'
import { Type } from './type.ts'

const Ready = Type.Object({ status: Type.Literal('ready'), warning: Type.Optional(Type.String()) })

/** Adds `/healthz` (the process is alive) and `/readyz` (its database is reachable and migrated). Neither needs a token. */
export function healthRoutes(app: App, readSql: Query, undeclaredProxy: UndeclaredProxyWatch): void {
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
    handler: async () => {
      if (!(await isMigrated(readSql))) throw unavailable(new NotMigrated())
      return {
        status: 'ready' as const,
        ...(undeclaredProxy.total > 0 && {
          warning: `${undeclaredProxy.total} request(s) with a forwarded header came from a peer that is not in TRUST_PROXY`,
        }),
      }
    },
  })
}

/** The cause for the log. The answer is the same 503 as for a database that cannot be reached. */
class NotMigrated extends Error {
  override name = 'NotMigrated'
}
