import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import type {
  FastifyBaseLogger,
  FastifyInstance,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify'
import type { BodyRule } from './body.ts'

/** The type of the Fastify instance to which routes are added. The schemas of a route determine its handler's types. */
export type App = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>

/** The authenticated user of a request, with the session and the `exp` of the request's token. */
export type Caller = { userId: number; sessionId: string; expiresAt: Date }

/**
 * The callers that may use a route. A route without `access` requires a user's token. `public` requires no token. A
 * `producer` must send an intake key, and an `operator` must send the metrics token.
 */
export type Access = 'public' | 'user' | 'producer' | 'operator'

declare module 'fastify' {
  interface FastifyContextConfig {
    access?: Access
    /**
     * Hides the route. A refused caller, or a request with another method, gets the same 404 as for an unknown path.
     */
    unlisted?: boolean
    /**
     * How the route reads its body. If a route has no such rule but its schema has a body, the route reads a JSON
     * object.
     */
    body?: BodyRule
    /** Whether the route has the `throttle` hook. Only the OpenAPI document uses this value. */
    throttled?: boolean
  }
  interface FastifyRequest {
    /** The guard sets the caller on every route with the access `user`. */
    caller: Caller
  }
}
