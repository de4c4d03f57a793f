import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import type {
  FastifyBaseLogger,
  FastifyInstance,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify'
import type { BodyRule } from './body.ts'

/** The app as routes see it: handlers typed from their schemas. */
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
 * Who may call a route. Closed by default: a route that says nothing wants a user's token, and *public* is the word one
 * must write. A `producer` brings an intake key, an `operator` the token of the metrics.
 */
export type Access = 'public' | 'user' | 'producer' | 'operator'

declare module 'fastify' {
  interface FastifyContextConfig {
    access?: Access
    /** Its path must look unknown to those it doesn't answer, whatever their method. */
    unlisted?: boolean
    /** How the body is read where it isn't the usual JSON object. */
    body?: BodyRule
    /** That `throttle` is among its hooks; for the OpenAPI document. */
    throttled?: boolean
  }
  interface FastifyRequest {
    /** Set by the guard on every route for users. */
    caller: Caller
  }
}
