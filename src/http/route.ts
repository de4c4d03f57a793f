import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import type {
  FastifyBaseLogger,
  FastifyInstance,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify'
import type { BodyRule } from './body.ts'

/** The app as routes see it. The types of a handler follow from its schemas. */
export type App = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>

/** The authenticated user of a request: the session that its token belongs to, and the token's `exp`. */
export type Caller = { userId: number; sessionId: string; expiresAt: Date }

/**
 * Who may call a route. Routes are closed by default: without `access` a route requires a user's token; only `public` opens
 * it. A `producer` sends an intake key, an `operator` the metrics token.
 */
export type Access = 'public' | 'user' | 'producer' | 'operator'

declare module 'fastify' {
  interface FastifyContextConfig {
    access?: Access
    /** Callers that the route does not answer get the 404 of an unknown path, for every method. */
    unlisted?: boolean
    /** How the route reads its body, unless the body is the usual JSON object. */
    body?: BodyRule
    /** Whether `throttle` is among the hooks of the route; for the OpenAPI document. */
    throttled?: boolean
  }
  interface FastifyRequest {
    /** Set by the guard on every route for users. */
    caller: Caller
  }
}
