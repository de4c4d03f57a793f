import { audit } from '../audit.ts'
import type { Context } from '../context.ts'
import { unauthenticated } from '../errors.ts'
import { JSON_BODY } from '../http/body.ts'
import { clientKey } from '../http/client-address.ts'
import { Message } from '../http/message.ts'
import type { App } from '../http/route.ts'
import { preferredLanguage } from '../language.ts'
import { createLimit } from '../limits/throttle.ts'
import { requireClaims } from './guard.ts'
import type { Tokens } from './jwt.ts'
import { refresh } from './refresh.ts'
import { LogoutRequest, RefreshResult } from './schema.ts'
import type { SessionCache } from './session-cache.ts'
import * as sessions from './sessions.ts'

/** The number of refreshes that one session may send in a minute. */
const MAX_REFRESHES = 60

type Dependencies = Pick<Context, 'sql' | 'now' | 'networks'> & { tokens: Tokens; cache: SessionCache }

/** Adds the routes that renew the token of a session and end a session. */
export function sessionRoutes(app: App, dependencies: Dependencies): void {
  refreshRoute(app, dependencies)
  logoutRoute(app, dependencies)
}

function refreshRoute(app: App, { sql, now, networks, tokens, cache }: Dependencies): void {
  const limit = createLimit(sql, now, 'refresh', MAX_REFRESHES)
  app.route({
    method: 'POST',
    url: '/api/v1/auth/refresh',
    // This route accepts expired tokens, which the guard for users would refuse. `refresh` checks the session.
    config: { access: 'public', throttled: 'session' },
    schema: {
      tags: ['Auth'],
      operationId: 'refreshToken',
      summary: 'Renew the access token, even after it has expired, until the session ends',
      description: 'By default, a session ends 7 days after the sign-in.',
      security: [{ bearer: [] }],
      response: { 200: RefreshResult },
    },
    handler: async request => {
      const instant = now()
      const claims = requireClaims(request, tokens, instant)
      const session = { userId: claims.sub, sessionId: claims.sid }
      await limit(claims.sid)
      const [network, agent] = await Promise.all([
        networks.hashNetwork(clientKey(request)),
        networks.hashText(`user agent:${request.headers['user-agent'] ?? ''}`),
      ])
      const refreshed = await refresh(sql, tokens, { claims, origin: { network, agent } }, instant)
      if (refreshed.outcome === 'reuse') cache.forget(session)
      if (refreshed.outcome !== 'renewed') {
        // A refused token belongs to a session that ended before. The end of the session has already removed its tokens
        // from the cache. So another call of `forget` would only let a client slow this process down.
        audit(request, refreshed.outcome === 'reuse' ? 'refresh_reuse' : 'refresh_refused', session)
        throw unauthenticated(true)
      }
      if (refreshed.isLate) audit(request, 'refresh_repeated', session)
      return { access_token: refreshed.token, token_type: 'bearer' as const, expires_in: refreshed.expiresInSeconds }
    },
  })
}

function logoutRoute(app: App, { sql, now, cache }: Dependencies): void {
  app.route({
    method: 'POST',
    url: '/api/v1/auth/logout',
    // A logout always succeeds. So a body that breaks the schema counts as a body without `forget`.
    config: { body: { ...JSON_BODY, lenient: true } },
    attachValidation: true,
    schema: {
      tags: ['Auth'],
      operationId: 'logout',
      summary: 'End this session',
      body: LogoutRequest,
      response: { 200: Message },
    },
    handler: async request => {
      const isForgotten = !request.validationError && request.body?.forget === true
      await sessions.end(sql, request.caller.sessionId, now(), isForgotten)
      cache.forget(request.caller)
      audit(request, 'logout')
      return { message: LOGGED_OUT[preferredLanguage(request.headers['accept-language'])] }
    },
  })
}

const LOGGED_OUT = { fr: 'Vous êtes déconnecté.', en: 'You are logged out.' }
