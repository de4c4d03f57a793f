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
import { type BodyRule, isMediaType, JSON_BODY, readBodyByRule } from './body.ts'
import { createProxyTrust } from './client-address.ts'
import { type ConnectionLimits, createHttpServer } from './connections.ts'
import { buildCorsHeaders } from './cors.ts'
import { sendFailure } from './failure.ts'
import type { Refusal } from './refusal.ts'
import type { App } from './route.ts'
import { compileValidator } from './validation.ts'

// The security headers of every answer. The page at `/` and the API reference replace the Content-Security-Policy with
// their own.
const SECURITY_HEADERS = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'strict-transport-security': 'max-age=31536000',
  // Routes with public content override this header.
  'cache-control': 'no-store',
}

/**
 * Our compilers for schemas. We pass them to the constructor of Fastify, because Fastify would otherwise load its own
 * compilers.
 */
const COMPILERS = {
  compilersFactory: {
    buildValidator: () => compileValidator,
    // By default, Fastify filters each answer: it removes the members that the schema of the answer does not name. We
    // do not need this filter, because `schema.ts` of each feature builds the answer, and the tests compare every
    // answer with its schema. The filter would make a page of notifications a tenth slower.
    buildSerializer: () => () => (value: unknown) => JSON.stringify(value),
  },
} as unknown as NonNullable<FastifyServerOptions['schemaController']>

/**
 * The functions that count every answer and every error. `route` is the pattern of the route, or undefined for an
 * unknown path.
 */
export type Observer = {
  countAnswer(method: string, route: string | undefined, status: number, seconds: number): void
  countRefusal(route: string | undefined, code: Code): void
}

/**
 * Creates the Fastify instance without routes. The instance validates input, reads bodies, sends error answers, and
 * logs and counts all answers.
 */
export function createServer({
  config,
  log,
  observer,
  limits,
}: {
  config: Config
  log: FastifyBaseLogger
  observer: Observer
  limits: ConnectionLimits
}): App {
  const handleError = (thrown: unknown, request: FastifyRequest, reply: FastifyReply) => {
    const code = sendFailure(thrown, request, reply)
    observer.countRefusal(request.routeOptions?.url, code)
  }
  const onAnswerEnd = (request: FastifyRequest, reply: FastifyReply) => {
    // Like nginx, we log 499 if the client closed the connection before the answer.
    const status = reply.raw.headersSent ? reply.statusCode : 499
    observer.countAnswer(request.method, request.routeOptions?.url, status, reply.elapsedTime / 1000)
    logAnswer(request, status, reply.elapsedTime)
  }
  const onRefusal = ({ status, code }: Refusal) => {
    observer.countAnswer('unknown', undefined, status, 0)
    observer.countRefusal(undefined, code)
    log.info({ status }, 'refused a request that is not valid HTTP')
  }
  const app = Fastify({
    loggerInstance: log,
    schemaController: COMPILERS,
    // `logAnswer` logs one line for each answer instead of the lines that Fastify would log.
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: () => randomUUID(),
    requestIdHeader: false,
    trustProxy: config.trustProxy.length > 0 && createProxyTrust(config.trustProxy),
    serverFactory: handle => createHttpServer({ handle, onRefusal }, limits, createDropWarning(log)),
    // During shutdown, the service answers requests on open connections with `Connection: close`. By default, Fastify
    // would refuse these requests with a 503.
    return503OnClosing: false,
    // Fastify calls this handler, and no hooks, if it cannot assign a request to a route, for example because it cannot
    // decode the path. So this handler does the work of the `onRequest` hook below.
    frameworkErrors: (error, request, reply) => {
      const [typedRequest, typedReply] = [request as FastifyRequest, reply as FastifyReply]
      typedReply.header('x-request-id', request.id).headers(SECURITY_HEADERS)
      typedReply.headers(buildCorsHeaders(config.corsOrigins, request.headers.origin))
      typedReply.raw.once('close', () => onAnswerEnd(typedRequest, typedReply))
      handleError(error, typedRequest, typedReply)
    },
    // `createHttpServer` handles the errors of the HTTP parser.
    clientErrorHandler: () => {},
  }) as App
  app.setErrorHandler(handleError)
  app.addHook('onRequest', async (request, reply) => {
    // Fastify calls `onResponse` only for complete answers. Most streams end earlier, when the client closes the
    // connection.
    reply.raw.once('close', () => onAnswerEnd(request, reply))
    reply.header('x-request-id', request.id).headers(SECURITY_HEADERS)
    // Routes that read no body ignore the content type. For other routes, `readBody` checks the size of the body,
    // and then the content type. Fastify's own check of the content type would come before these two checks. Fastify
    // would refuse an empty body with a malformed content type, and would answer 400 to a QUERY request without a
    // content type. With the assignment below, Fastify's check always passes.
    if (!bodyRule(request) || !isMediaType(request.headers['content-type'])) {
      request.headers['content-type'] = 'application/octet-stream'
    }
  })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (request: FastifyRequest, payload: NodeJS.ReadableStream) => {
    const rule = bodyRule(request)
    return rule ? readBodyByRule(request, payload, rule) : Promise.resolve(undefined)
  })
  return app
}

function bodyRule({ routeOptions }: FastifyRequest): BodyRule | undefined {
  return routeOptions.config?.body ?? (routeOptions.schema?.body ? JSON_BODY : undefined)
}

/**
 * Logs one line for each answer. The line contains the pattern of the route instead of the path, because a path can
 * contain identifiers.
 */
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

/** Returns a function that warns of refused connections, at most once a minute. */
function createDropWarning(log: FastifyBaseLogger): () => void {
  let warnedAt = Number.NEGATIVE_INFINITY
  return () => {
    if (performance.now() - warnedAt < 60_000) return
    warnedAt = performance.now()
    log.warn('refused a connection because too many connections are open')
  }
}
