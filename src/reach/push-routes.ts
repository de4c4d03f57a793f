import { audit } from '../audit.ts'
import { requireClaims } from '../auth/guard.ts'
import type { Tokens } from '../auth/jwt.ts'
import type { Context } from '../context.ts'
import { type Fields, invalid, notFound, unauthenticated } from '../errors.ts'
import { Message } from '../http/message.ts'
import type { App } from '../http/route.ts'
import { Type } from '../http/type.ts'
import { preferredLanguage } from '../language.ts'
import { isTimeZone } from '../time/wall-clock.ts'
import type { FindEndpoint } from './push-hosts.ts'
import { PushKey, Subscription, SubscriptionPath, SubscriptionRequest, toSubscription } from './push-schema.ts'
import * as subscriptions from './subscriptions.ts'

type Dependencies = {
  /** The public keys in base64url, the newest first. Without a key, push is off. */
  publicKeys: readonly string[]
  findEndpoint: FindEndpoint
  tokens: Tokens
}
type Ctx = Pick<Context, 'sql' | 'readSql' | 'now' | 'config'>

/** Adds the routes for push subscriptions. */
export function pushRoutes(app: App, ctx: Ctx, dependencies: Dependencies): void {
  keyRoute(app, dependencies)
  putRoute(app, ctx, dependencies)
  deleteRoute(app, ctx, dependencies)
}

function keyRoute(app: App, { publicKeys }: Dependencies): void {
  app.route({
    method: 'GET',
    url: '/api/v1/push/key',
    config: { access: 'public' },
    schema: {
      tags: ['Push'],
      operationId: 'getPushKey',
      summary: 'Get the key with which a browser subscribes to pushes; 404 if this service sends no pushes',
      response: { 200: Type.Object({ data: PushKey }) },
    },
    handler: async () => {
      const [publicKey] = publicKeys
      if (publicKey === undefined) throw notFound()
      return { data: { public_key: publicKey } }
    },
  })
}

function putRoute(app: App, { sql, now, config }: Ctx, { publicKeys, findEndpoint }: Dependencies): void {
  app.route({
    method: 'PUT',
    url: '/api/v1/push/subscriptions',
    schema: {
      tags: ['Push'],
      operationId: 'putPushSubscription',
      summary: "Store or confirm this browser's push subscription; 404 if this service sends no pushes",
      body: SubscriptionRequest,
      response: { 200: Type.Object({ data: Subscription }) },
    },
    handler: async request => {
      const [newestKey] = publicKeys
      if (newestKey === undefined) throw notFound()
      const { endpoint, keys, public_key: publicKey, time_zone: timeZone } = request.body
      const target = findEndpoint(endpoint)
      const faults: Fields = {
        ...(!target && { endpoint: [UNKNOWN_HOST] }),
        ...(publicKey !== undefined && !publicKeys.includes(publicKey) && { public_key: [UNKNOWN_KEY] }),
        ...(timeZone !== undefined && !isTimeZone(timeZone) && { time_zone: [UNKNOWN_ZONE] }),
      }
      if (!target || Object.keys(faults).length > 0) throw invalid(faults)
      const sent = { endpoint: target.url.href, ...keys, publicKey, timeZone }
      const settings = { newestKey, defaults: config.preferenceDefaults, now: now() }
      const stored = await subscriptions.put(sql, request.caller, sent, settings)
      // A concurrent request has ended the session or deleted the account.
      if (!stored) throw unauthenticated(true)
      if (stored.is_new) audit(request, 'push_subscribed')
      return { data: toSubscription(stored) }
    },
  })
}

function deleteRoute(app: App, { sql, readSql, now, config }: Ctx, { findEndpoint, tokens }: Dependencies): void {
  app.route({
    method: 'DELETE',
    url: '/api/v1/push/subscriptions',
    // A client that was closed for long has an expired token, and must still be able to stop the pushes. This route
    // never renews a token, so an old token is no sign of theft.
    config: { access: 'public' },
    schema: {
      tags: ['Push'],
      operationId: 'deletePushSubscription',
      summary: "Delete this browser's push subscription, also with a token that has expired",
      security: [{ bearer: [] }],
      body: SubscriptionPath,
      response: { 200: Message },
    },
    // A request gets its 401 before the body is checked, as on other routes.
    onRequest: async request => {
      const { sub: userId, sid: sessionId } = requireClaims(request, tokens, now())
      if (!(await subscriptions.hasOpenSession(readSql, { userId, sessionId }))) throw unauthenticated(true)
    },
    handler: async request => {
      const instant = now()
      const { sub: userId, sid: sessionId } = requireClaims(request, tokens, instant)
      const endpoint = findEndpoint(request.body.endpoint)?.url.href ?? request.body.endpoint
      const settings = { defaults: config.preferenceDefaults, now: instant }
      const isRemoved = await subscriptions.remove(sql, userId, endpoint, settings)
      if (isRemoved) audit(request, 'push_unsubscribed', { userId, sessionId })
      return { message: REMOVED[preferredLanguage(request.headers['accept-language'])] }
    },
  })
}

const REMOVED = { fr: 'Les notifications push sont désactivées sur cet appareil.', en: 'This device gets no pushes.' }
const UNKNOWN_HOST = {
  fr: 'Ce service n’envoie pas de notifications à cette adresse.',
  en: 'This service sends no pushes to this endpoint.',
}
const UNKNOWN_KEY = { fr: 'Cette clé n’est pas celle de ce service.', en: 'This key does not belong to this service.' }
const UNKNOWN_ZONE = { fr: 'Ce fuseau horaire n’existe pas.', en: 'There is no such time zone.' }
