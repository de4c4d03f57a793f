import { randomUUID } from 'node:crypto'
import Fastify, {
  type FastifyBaseLogger,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerOptions,
  LogController,
} from 'fastify'
import type { Config } from '../config.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { type BodyRule, isMediaType, JSON_BODY, readBody } from './body.ts'
import { answerFailure, answerParserFailure } from './failure.ts'
import type { App } from './route.ts'
import { compileValidator } from './validation.ts'

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

/** Given to Fastify at its making, rather than set later, so that it doesn't read the compilers that it would bring. */
const COMPILERS = {
  compilersFactory: {
    buildValidator: () => compileValidator,
    // What an answer holds is decided by each feature's `schema.ts`; to go by the documented schema once more would cost
    // a tenth of what a page costs.
    buildSerializer: () => () => (value: unknown) => JSON.stringify(value),
  },
} as unknown as NonNullable<FastifyServerOptions['schemaController']>

/** Fastify as everything here wants it: how it validates, reads bodies, logs, fails and counts. It has no route yet. */
export function createServer({
  config,
  log,
  metrics,
}: {
  config: Config
  log: FastifyBaseLogger
  metrics: Metrics
}): App {
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
    reply.header('x-request-id', request.id).headers(SECURITY_HEADERS)
    // "An endpoint without input ignores body and content type". Elsewhere `readBody` judges the type, after the size;
    // Fastify's own look would come first, refuse an empty body with a type it can't read, and call QUERY without one a 400.
    if (!bodyRule(request) || !isMediaType(request.headers['content-type'])) {
      request.headers['content-type'] = 'application/octet-stream'
    }
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
