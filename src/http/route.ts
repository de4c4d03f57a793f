import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import type {
  FastifyBaseLogger,
  FastifyInstance,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify'
import type { BodyRule } from './body.ts'

/**
 * The type of the Fastify instance to which routes are added. From the schemas of a route, TypeScript derives the types
 * of the route's handler.
 */
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
 * States who may use a route. The default, `user`, requires the token of a user. `public` requires no token. `producer`
 * requires an intake key, and `operator` requires the metrics token.
 */
export type Access = 'public' | 'user' | 'producer' | 'operator'

declare module 'fastify' {
  interface FastifyContextConfig {
    access?: Access
    /**
     * Whether the existence of the route is hidden. If such a route does not support the method of a request, the
     * service sends the same 404 as for an unknown path, and not a 405.
     */
    unlisted?: boolean
    /**
     * The rule by which the route reads the body of a request. If a route has no rule, but its schema has a body, the
     * rule is `JSON_BODY`.
     */
    body?: BodyRule
    /**
     * Whether the route has the hooks of `createCodeThrottle`. `session` means that the route counts the requests of
     * each session, without these hooks, so its answers have no rate-limit headers. Only the OpenAPI document uses this
     * value.
     */
    throttled?: boolean | 'session'
    /** Whether the handler waits for a slot itself. Otherwise `limitHandler` makes the handler wait for a slot. */
    waitsForSlot?: boolean
    /** Whether `limitHandler` makes the handler wait for a slot although the route is not below `/api/v1/`. */
    needsSlot?: boolean
  }
  interface FastifyRequest {
    /** The user who sent the request. The guard for users sets this property on every route with the access `user`. */
    caller: Caller
  }
}
