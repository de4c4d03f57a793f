import { randomUUID } from 'node:crypto'
import cors from '@fastify/cors'
import Fastify, { type FastifyReply, type FastifyRequest, type FastifyServerOptions, LogController } from 'fastify'
import { createGuards } from './auth/guard.ts'
import { createTokens } from './auth/jwt.ts'
import { authRoutes } from './auth/routes.ts'
import { createSessionCache } from './auth/session-cache.ts'
import * as sessions from './auth/sessions.ts'
import type { Context } from './context.ts'
import { playRoutes } from './games/play-routes.ts'
import { intakeRoutes } from './games/routes.ts'
import { overdue } from './games/schedule.ts'
import { type BodyRule, isMediaType, JSON_BODY, readBody } from './http/body.ts'
import { trustedProxies, watchUndeclaredProxy } from './http/client-address.ts'
import { closePromptly } from './http/closing.ts'
import { answerFailure, answerParserFailure } from './http/failure.ts'
import { healthRoutes } from './http/health.ts'
import { noteRoutes } from './http/openapi.ts'
import { pathTable } from './http/paths.ts'
import { referenceRoutes } from './http/reference.ts'
import type { App } from './http/route.ts'
import { compileValidator } from './http/validation.ts'
import { levelRoutes } from './levels/routes.ts'
import { mailboxRoutes } from './mail/mailbox-routes.ts'
import { metricsRoutes } from './metrics/routes.ts'
import { notificationRoutes } from './notifications/routes.ts'
import { createStreams } from './notifications/stream.ts'
import { eraseUser } from './personal-data.ts'
import { webRoutes } from './web/routes.ts'

// "the usual security headers": what a JSON API should say by itself; pages say their own.
const SECURITY_HEADERS = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'strict-transport-security': 'max-age=31536000',
  // Whatever isn't public by nature says so itself.
  'cache-control': 'no-store',
}

/** The HTTP app with its real options, the same in tests and in production. It listens to nothing yet. */
export async function createApp(ctx: Context): Promise<App> {
  const app = createServer(ctx)
  const paths = pathTable()
  const tokens = createTokens(ctx.keys)
  const cache = createSessionCache(ctx, tokens, ctx.listener)
  const guards = createGuards(ctx, cache)
  const undeclaredProxy = watchUndeclaredProxy(trustedProxies(ctx.config.trustProxy), ctx.metrics.undeclaredProxy)

  closePromptly(app)
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id).headers(SECURITY_HEADERS)
    undeclaredProxy.notice(request, ctx.now())
    // "An endpoint without input ignores body and content type". Elsewhere `readBody` judges the type, after the size;
    // Fastify's own look would come first, refuse an empty body with a type it can't read, and call QUERY without one a 400.
    if (!bodyRule(request) || !isMediaType(request.headers['content-type'])) {
      request.headers['content-type'] = 'application/octet-stream'
    }
  })
  if (ctx.config.corsOrigins.length > 0) {
    await app.register(cors, {
      origin: [...ctx.config.corsOrigins],
      methods: ['GET', 'POST', 'DELETE'],
      exposedHeaders: EXPOSED_HEADERS,
      maxAge: 600,
      // Else an OPTIONS that is no preflight is a 400, which here only the HTTP parser gives.
      strictPreflight: false,
    })
  }
  app.addHook('onRoute', route => {
    paths.add(route)
    const guard = guards[route.config?.access ?? 'user']
    if (guard) route.onRequest = [guard, ...[route.onRequest ?? []].flat()]
  })
  noteRoutes(app)
  app.setNotFoundHandler(request => {
    throw paths.refusal(request.url)
  })

  healthRoutes(app, ctx.sql, undeclaredProxy)
  if (ctx.exposeMetrics) metricsRoutes(app, ctx, ctx.exposeMetrics, () => overdue(ctx.sql, ctx.now()))
  if (ctx.config.serves) {
    authRoutes(app, ctx, { tokens, cache }, userId => eraseUser(ctx.sql, userId))
    levelRoutes(app, ctx)
    intakeRoutes(app, { ...ctx, sql: ctx.intakeSql })
    notificationRoutes(app, ctx, openStreams(app, ctx))
    referenceRoutes(app)
    if (ctx.mailbox) {
      await app.register(mailboxRoutes, { mailbox: ctx.mailbox })
      await app.register(playRoutes, ctx)
    }
    if (ctx.config.web) await webRoutes(app, ctx.log)
  }
  return app
}

function openStreams(app: App, { readSql, log, now, metrics, listener }: Context) {
  const streams = createStreams({
    sql: readSql,
    listener: listener!,
    log,
    now,
    running: sessionIds => sessions.running(readSql, sessionIds),
    count: metrics.stream,
  })
  sessions.onEnded(listener!, streams.end)
  // From here on the listener knows all that is to be heard.
  app.addHook('onReady', async () => listener!.start())
  // Nothing else would end them.
  app.addHook('preClose', async () => streams.close())
  return streams
}

const EXPOSED_HEADERS = [
  'Retry-After',
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'RateLimit',
  'RateLimit-Policy',
  'X-Request-Id',
]

/** Given to Fastify at its making, rather than set later, so that it doesn't read the compilers that it would bring. */
const COMPILERS = {
  compilersFactory: {
    buildValidator: () => compileValidator,
    // What an answer holds is decided by each feature's `schema.ts`; to go by the documented schema once more costs a tenth of a page.
    buildSerializer: () => () => (value: unknown) => JSON.stringify(value),
  },
} as unknown as NonNullable<FastifyServerOptions['schemaController']>

function createServer({ config, log, metrics }: Context): App {
  const fail = (thrown: unknown, request: FastifyRequest, reply: FastifyReply) => {
    const code = answerFailure(thrown, request, reply)
    metrics.refused(request.routeOptions?.url, code)
  }
  const answered = (request: FastifyRequest, reply: FastifyReply) => {
    // nginx's status for a client that went before its answer.
    const status = reply.raw.headersSent ? reply.statusCode : 499
    metrics.answered(request.method, request.routeOptions?.url, status, reply.elapsedTime / 1000)
    logAnswer(request, status, reply.elapsedTime)
  }
  const app = Fastify({
    loggerInstance: log,
    schemaController: COMPILERS,
    // `logAnswer` below says all of it in one line.
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: () => randomUUID(),
    requestIdHeader: false,
    trustProxy: config.trustProxy.length > 0 ? [...config.trustProxy] : false,
    // Node by itself holds connections with slow headers for over a minute.
    requestTimeout: 30_000,
    keepAliveTimeout: 72_000,
    http: { headersTimeout: 10_000, connectionsCheckingInterval: 5_000, requireHostHeader: false },
    // While closing, a connection that is still open gets its answer, then `Connection: close`.
    return503OnClosing: false,
    // Here no hook is called.
    frameworkErrors: (error, request, reply) => {
      const [asked, answer] = [request as FastifyRequest, reply as FastifyReply]
      answer.header('x-request-id', request.id).headers(SECURITY_HEADERS)
      answer.raw.once('close', () => answered(asked, answer))
      fail(error, asked, answer)
    },
    clientErrorHandler: (error, socket) => {
      const answer = answerParserFailure(error, socket)
      if (!answer) return
      metrics.answered('unknown', undefined, answer.status, 0)
      metrics.refused(undefined, answer.code)
      log.info({ status: answer.status }, 'answered before there was a request')
    },
  }) as App
  // An `Expect` that we don't know is ignored, rather than answered by Node in a shape of its own.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))

  app.setErrorHandler(fail)
  app.addHook('onRequest', async (request, reply) => {
    // Not `onResponse`: it hears of no client that goes before its answer has ended, which is how most streams end.
    reply.raw.once('close', () => answered(request, reply))
  })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (request: FastifyRequest, payload: NodeJS.ReadableStream) => {
    const rule = bodyRule(request)
    return rule ? readBody(request, payload, rule) : Promise.resolve(undefined)
  })
  return app
}

function bodyRule({ routeOptions }: FastifyRequest): BodyRule | undefined {
  return routeOptions.config?.body ?? (routeOptions.schema?.body ? JSON_BODY : undefined)
}

/** One line an answer. The route's pattern stands for the path, so that no identifier or address gets into the log. */
function logAnswer(request: FastifyRequest, status: number, ms: number): void {
  request.log.info(
    {
      method: request.method,
      route: request.routeOptions?.url,
      status,
      ms: Math.round(ms * 10) / 10,
    },
    'answered',
  )
}
