import { randomUUID } from 'node:crypto'
import Fastify, {
  type FastifyBaseLogger,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerOptions,
  LogController,
} from 'fastify'
import type { Config } from '../config.ts'
import type { Code } from '../errors.ts'
import { type BodyRule, isMediaType, JSON_BODY, readBody } from './body.ts'
import { sendFailure, sendParserFailure } from './failure.ts'
import type { App } from './route.ts'
import { compileValidator } from './validation.ts'

// "The usual security headers" of a JSON API. The page and the reference set their own policy.
const SECURITY_HEADERS = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'strict-transport-security': 'max-age=31536000',
  // Routes with public content override this one.
  'cache-control': 'no-store',
}

/** Passed to the constructor, so Fastify does not load its own compilers. */
const COMPILERS = {
  compilersFactory: {
    buildValidator: () => compileValidator,
    // `schema.ts` of each feature decides what an answer holds, and the tests compare every answer with its schema. To filter
    // by the schema at run time too would cost a tenth of the time of a notification page.
    buildSerializer: () => () => (value: unknown) => JSON.stringify(value),
  },
} as unknown as NonNullable<FastifyServerOptions['schemaController']>

/** Gets every answer and every error, to count them. `route` is a pattern; undefined for an unknown path. */
export type Observer = {
  countAnswer(method: string, route: string | undefined, status: number, seconds: number): void
  countRefusal(route: string | undefined, code: Code): void
}

/** Creates the Fastify instance: how it validates, reads bodies, logs, answers errors and counts. It has no route yet. */
export function createServer({
  config,
  log,
  observer,
}: {
  config: Config
  log: FastifyBaseLogger
  observer: Observer
}): App {
  const handleError = (thrown: unknown, request: FastifyRequest, reply: FastifyReply) => {
    const code = sendFailure(thrown, request, reply)
    observer.countRefusal(request.routeOptions?.url, code)
  }
  const onAnswerEnd = (request: FastifyRequest, reply: FastifyReply) => {
    // 499 is nginx's status for a client that closed the connection before its answer.
    const status = reply.raw.headersSent ? reply.statusCode : 499
    observer.countAnswer(request.method, request.routeOptions?.url, status, reply.elapsedTime / 1000)
    logAnswer(request, status, reply.elapsedTime)
  }
  const app = Fastify({
    loggerInstance: log,
    schemaController: COMPILERS,
    // `logAnswer` below logs one line for each answer.
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: () => randomUUID(),
    requestIdHeader: false,
    trustProxy: config.trustProxy.length > 0 ? [...config.trustProxy] : false,
    // By default, Node keeps connections with slow headers open for more than a minute.
    requestTimeout: 30_000,
    keepAliveTimeout: 72_000,
    http: { headersTimeout: 10_000, connectionsCheckingInterval: 5_000, requireHostHeader: false },
    // During shutdown, an open connection still gets its answer, with `Connection: close`.
    return503OnClosing: false,
    // Fastify calls no hook for these errors.
    frameworkErrors: (error, request, reply) => {
      const [typedRequest, typedReply] = [request as FastifyRequest, reply as FastifyReply]
      typedReply.header('x-request-id', request.id).headers(SECURITY_HEADERS)
      typedReply.raw.once('close', () => onAnswerEnd(typedRequest, typedReply))
      handleError(error, typedRequest, typedReply)
    },
    clientErrorHandler: (error, socket) => {
      const answer = sendParserFailure(error, socket)
      if (!answer) return
      observer.countAnswer('unknown', undefined, answer.status, 0)
      observer.countRefusal(undefined, answer.code)
      log.info({ status: answer.status }, 'answered before there was a request')
    },
  }) as App
  // Ignores an unknown `Expect`. By default, Node answers it with a 417 that lacks the shape of our errors.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))

  app.setErrorHandler(handleError)
  app.addHook('onRequest', async (request, reply) => {
    // Fastify calls `onResponse` only for complete answers. Most streams end when the client closes the connection.
    reply.raw.once('close', () => onAnswerEnd(request, reply))
    reply.header('x-request-id', request.id).headers(SECURITY_HEADERS)
    // "An endpoint without input ignores the body and its content type." Elsewhere `readBody` checks the type, after the
    // size. Fastify's own check would come first, reject an empty body with an unknown type, and answer 400 to a QUERY
    // without a type. So Fastify sees a type that it accepts.
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

/** Logs one line for each answer, with the route's pattern instead of the path: no identifier or address gets into the log. */
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
