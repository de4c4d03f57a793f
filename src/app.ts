import cors from '@fastify/cors'
import { accountRoutes } from './accounts/routes.ts'
import { createBuckets } from './auth/budgets.ts'
import { createGuards } from './auth/guard.ts'
import { FULL_BUDGET, readInstallation } from './auth/installation-budget.ts'
import { createTokens, type Tokens } from './auth/jwt.ts'
import { authRoutes } from './auth/routes.ts'
import { createSessionCache } from './auth/session-cache.ts'
import { onEnded } from './auth/session-ended.ts'
import * as sessions from './auth/sessions.ts'
import type { Context } from './context.ts'
import { hasOtherCollation } from './db/collation.ts'
import { demoRoutes } from './games/demo-routes.ts'
import { intakeRoutes } from './games/routes.ts'
import { countOverdue } from './games/schedule.ts'
import { watchUndeclaredProxy } from './http/client-address.ts'
import { closeConnectionsOnShutdown } from './http/closing.ts'
import { CONNECTION_LIMITS, type ConnectionLimits } from './http/connections.ts'
import { EXPOSED_HEADERS } from './http/cors.ts'
import { closeConnectionsAfterAnswers } from './http/draining.ts'
import { healthRoutes } from './http/health.ts'
import { isLocalRequest } from './http/local.ts'
import { recordRoutes } from './http/openapi/document.ts'
import { referenceRoutes } from './http/openapi/reference.ts'
import { createPathTable } from './http/paths.ts'
import type { App } from './http/route.ts'
import { createServer } from './http/server.ts'
import { createSlots, limitHandler } from './http/slots.ts'
import { mailboxRoutes } from './mail/mailbox-routes.ts'
import { metricsRoutes } from './metrics/routes.ts'
import { notificationRoutes } from './notifications/routes.ts'
import { Streams } from './notifications/stream.ts'
import { eraseUser } from './personal-data.ts'
import { createDevPush } from './reach/dev-push.ts'
import { devPushRoutes } from './reach/dev-push-routes.ts'
import { preferenceRoutes } from './reach/preference-routes.ts'
import { createFindEndpoint } from './reach/push-hosts.ts'
import { pushRoutes } from './reach/push-routes.ts'
import { unsubscribeRoutes } from './reach/unsubscribe-routes.ts'
import { createVapid } from './reach/vapid.ts'
import { webRoutes } from './web/routes.ts'

/**
 * Creates the HTTP app with all routes. Production and the tests both use this function. The returned app does not
 * listen on a port yet.
 */
export async function createApp(ctx: Context, limits = CONNECTION_LIMITS): Promise<App> {
  const app = createServer({ config: ctx.config, log: ctx.log, observer: ctx.metrics, limits })
  const slots = createSlots()
  const paths = createPathTable({ answersOptions: ctx.config.corsOrigins.length > 0 })
  const tokens = createTokens(ctx.keys)
  const cache = createSessionCache(ctx, tokens, ctx.listener)
  const guards = createGuards(ctx, cache)
  const undeclaredProxy = watchUndeclaredProxy(ctx.config.trustProxy, ctx.metrics.countUndeclaredProxy)

  closeConnectionsOnShutdown(app)
  closeConnectionsAfterAnswers(app, ctx.stopping)
  app.addHook('onRequest', async request => {
    undeclaredProxy.check(request, ctx.now())
  })
  if (ctx.config.corsOrigins.length > 0) {
    await app.register(cors, {
      origin: [...ctx.config.corsOrigins],
      // The plugin reads this array at each preflight request. All routes have been added before the first request, so
      // the array contains the methods of all routes.
      methods: paths.allMethods,
      exposedHeaders: EXPOSED_HEADERS,
      maxAge: 600,
      // In strict mode, the plugin would answer 400 to an OPTIONS request that is not a preflight request. In our API,
      // only the HTTP parser answers 400.
      strictPreflight: false,
    })
  }
  app.addHook('onRequest', async request => paths.checkMethod(request))
  app.addHook('onRoute', route => {
    paths.add(route)
    const guard = guards[route.config?.access ?? 'user']
    if (guard) route.onRequest = [guard, ...[route.onRequest ?? []].flat()]
    limitHandler(route, slots)
  })
  recordRoutes(app, ctx.config.appName)
  app.setNotFoundHandler(request => {
    throw paths.toError(request.url)
  })

  const buckets = createBuckets(ctx.config.guessBudgets)
  const readBudget = async () => (buckets.isOn ? readInstallation(ctx.readSql, buckets, ctx.now()) : FULL_BUDGET)
  healthRoutes(app, ctx, async request => {
    const [{ parts }, isOtherCollation] = await Promise.all([readBudget(), hasOtherCollation(ctx.readSql)])
    return [
      ...(undeclaredProxy.total > 0 ? [UNDECLARED_PROXY] : []),
      // No mail goes to an unknown address. So a stranger who sees that mails fail can find out who has an account.
      ...(ctx.mailFails() && isLocalRequest(request) ? [FAILING_MAIL] : []),
      ...(parts > 1 ? [SPENT_BUDGET] : []),
      ...(ctx.clock.isWrong() ? [WRONG_CLOCK] : []),
      ...(isOtherCollation ? [OTHER_COLLATION] : []),
    ]
  })
  let events: ReturnType<typeof intakeRoutes> | undefined
  if (ctx.exposeMetrics) {
    metricsRoutes(app, ctx, ctx.exposeMetrics, {
      countOverdue: () => countOverdue(ctx.sql, ctx.now()),
      countWaiting: () => ({
        requests: slots.writes.waiting + slots.strangers.waiting,
        reads: slots.reads.waiting,
        intake: events?.waiting ?? 0,
      }),
      readBudget,
    })
  }
  if (ctx.config.serves) {
    // If the database cannot be reached yet, the first request that needs the key loads it.
    app.addHook('onReady', () => ctx.networks.prepare().catch(error => ctx.log.warn({ err: error }, 'no network key')))
    authRoutes(app, ctx, { tokens, cache, slots, erase: userId => eraseUser(ctx.sql, userId) })
    accountRoutes(app, ctx)
    events = intakeRoutes(app, { ...ctx, sql: ctx.intakeSql })
    notificationRoutes(app, ctx, openStreams(app, ctx, limits))
    reachRoutes(app, ctx, tokens)
    referenceRoutes(app, ctx.config.appName)
    await addDevelopmentRoutes(app, ctx)
    if (ctx.config.web) await webRoutes(app, ctx.log, ctx.config)
  }
  return app
}

/** Adds the routes of preferences, push subscriptions and unsubscribing. */
function reachRoutes(app: App, ctx: Context, tokens: Tokens): void {
  preferenceRoutes(app, ctx)
  unsubscribeRoutes(app, ctx)
  pushRoutes(app, ctx, {
    publicKeys: createVapid(ctx.vapidKeys, ctx.config.vapidSubject).publicKeys,
    findEndpoint: createFindEndpoint(ctx.config.pushHosts, () => findOwnPort(app, ctx)),
    tokens,
  })
}

/** Returns the port of the development push service. */
function findOwnPort(app: App, { mailbox }: Context): number | undefined {
  const address = app.server.address()
  return mailbox && typeof address === 'object' ? address?.port : undefined
}

/** Adds the development mailbox, the development push service and the demo, if this process has the mailbox. */
async function addDevelopmentRoutes(app: App, ctx: Context): Promise<void> {
  if (!ctx.mailbox) return
  const mailboxKey = ctx.mailbox.key
  await app.register(mailboxRoutes, { mailbox: ctx.mailbox })
  await app.register(devPushRoutes, { devPush: createDevPush(ctx.now), mailboxKey })
  await app.register(demoRoutes, { ...ctx, mailboxKey })
}

function openStreams(app: App, { readSql, log, now, metrics, listener }: Context, limits: ConnectionLimits) {
  const streams = new Streams({
    sql: readSql,
    listener,
    maxStreams: limits.streams,
    maxQuietMs: limits.quietStreamMs,
    log,
    now,
    findRunning: sessionIds => sessions.findRunning(readSql, sessionIds),
    count: metrics.countStream,
  })
  onEnded(listener, ended => streams.end(ended))
  // Fastify calls this hook after all handlers of the listener have been registered. So the listener can start.
  app.addHook('onReady', async () => listener.start())
  // `app.close()` waits until all answers have ended. A stream does not end by itself, so this hook ends the streams.
  app.addHook('preClose', async () => streams.close())
  return streams
}

// Everyone can read the warnings of `/readyz`, so they contain no numbers and no reasons.
const UNDECLARED_PROXY =
  'since its start, this process got requests that look forwarded from a peer that is not in TRUST_PROXY'
const FAILING_MAIL = 'the mail server takes no mail of this process'
const OTHER_COLLATION = 'the sort order of texts has changed under the database'
const WRONG_CLOCK = 'the clock of this machine and the clock of the database differ by more than 5 s'
const SPENT_BUDGET =
  'strangers spent the budget of wrong guesses of the installation, so their codes have several parts'
