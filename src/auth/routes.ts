import { audit } from '../audit.ts'
import type { Context } from '../context.ts'
import { invalid, unauthenticated } from '../errors.ts'
import { Message } from '../http/message.ts'
import type { App } from '../http/route.ts'
import { Type } from '../http/type.ts'
import { preferredLanguage } from '../language.ts'
import { throttle } from '../limits/throttle.ts'
import { readCredentials, readEmail } from './credentials.ts'
import { bearer, requireClaims } from './guard.ts'
import type { Tokens } from './jwt.ts'
import { Code, CredentialsRequest, OtpVerification, RefreshResult, TokenResult } from './schema.ts'
import type { SessionCache } from './session-cache.ts'
import * as sessions from './sessions.ts'
import { requestCode, verifyCode, verifyOwner } from './sign-in.ts'

/** @param erase takes away all that is held on a user, in every feature */
export function authRoutes(
  app: App,
  ctx: Context,
  { tokens, cache }: { tokens: Tokens; cache: SessionCache },
  erase: (userId: number) => Promise<unknown>,
): void {
  const { sql, keys, now, config, metrics } = ctx
  const secrets = { keys, tokens }

  app.route({
    method: 'POST',
    url: '/api/v1/auth/request-otp',
    config: { access: 'public', throttled: true },
    onRequest: throttle(sql, 'request-otp', config.throttle.requestOtp),
    schema: {
      tags: ['Auth'],
      operationId: 'requestOtp',
      summary: 'Ask for a one-time code, to sign up or in',
      // A token, even an expired one, gives its session a lane of its own; none is needed.
      security: [{}, { bearer: [] }],
      body: CredentialsRequest,
      response: { 200: Message },
    },
    handler: async request => {
      const instant = now()
      const language = preferredLanguage(request.headers['accept-language'])
      const { email, profile } = readCredentials(request.body, config.termsVersion, instant)
      metrics.code(await requestCode(sql, secrets, email, profile, bearer(request), language, instant))
      return { message: CODE_SENT[language] }
    },
  })

  app.route({
    method: 'POST',
    url: '/api/v1/auth/verify-otp',
    config: { access: 'public', throttled: true },
    onRequest: throttle(sql, 'verify-otp', config.throttle.verifyOtp),
    schema: {
      tags: ['Auth'],
      operationId: 'verifyOtp',
      summary: 'Trade a code for an access token',
      // A token, even an expired one, gives its session a lane of its own; none is needed.
      security: [{}, { bearer: [] }],
      body: OtpVerification,
      response: { 200: TokenResult },
    },
    handler: async request => {
      const language = preferredLanguage(request.headers['accept-language'])
      const email = readEmail(request.body.email)
      const instant = now()
      const signed = await verifyCode(sql, secrets, email, request.body.code, bearer(request), language, instant)
      metrics.code(signed ? 'spent' : 'failed')
      if (!signed) {
        audit(request, 'sign_in_failed')
        throw wrongCode()
      }
      audit(request, signed.isNewUser ? 'sign_up' : 'sign_in', signed)
      return { access_token: signed.token, is_new_user: signed.isNewUser }
    },
  })

  app.route({
    method: 'POST',
    url: '/api/v1/auth/refresh',
    // The guard would refuse an expired token; here it is welcome, and `refresh` itself checks the session.
    config: { access: 'public' },
    schema: {
      tags: ['Auth'],
      operationId: 'refreshToken',
      summary: 'Renew the access token, also an expired one, for 7 days from the sign-in',
      security: [{ bearer: [] }],
      response: { 200: RefreshResult },
    },
    handler: async request => {
      const instant = now()
      const claims = requireClaims(request, tokens, instant)
      const refreshed = await sessions.refresh(sql, tokens, claims, instant)
      if (refreshed.outcome !== 'renewed') {
        const whose = { userId: claims.sub, sessionId: claims.sid }
        cache.forget(whose)
        audit(request, refreshed.outcome === 'reuse' ? 'refresh_reuse' : 'refresh_refused', whose)
        throw unauthenticated(true)
      }
      return { access_token: refreshed.token, token_type: 'bearer' as const, expires_in: refreshed.expiresInSeconds }
    },
  })

  app.route({
    method: 'POST',
    url: '/api/v1/auth/logout',
    schema: { tags: ['Auth'], operationId: 'logout', summary: 'End this session', response: { 200: Message } },
    handler: async request => {
      await sessions.end(sql, request.caller.sessionId, now())
      cache.forget(request.caller)
      audit(request, 'logout')
      return { message: LOGGED_OUT[preferredLanguage(request.headers['accept-language'])] }
    },
  })

  app.route({
    method: 'DELETE',
    url: '/api/v1/auth/me',
    schema: {
      tags: ['Auth'],
      operationId: 'deleteMe',
      summary: 'Delete one’s own account, with a fresh code',
      body: Type.Object({ code: Code }),
      response: { 200: Message },
    },
    handler: async request => {
      const isOwner = await verifyOwner(sql, keys, request.caller, request.body.code, now())
      metrics.code(isOwner ? 'spent' : 'failed')
      if (!isOwner) {
        audit(request, 'deletion_failed')
        throw wrongCode()
      }
      await erase(request.caller.userId)
      cache.forget({ userId: request.caller.userId })
      audit(request, 'deletion')
      return { message: DELETED[preferredLanguage(request.headers['accept-language'])] }
    },
  })
}

function wrongCode() {
  return invalid(
    { code: [{ fr: 'Ce code est incorrect ou a expiré.', en: 'This code is wrong or has expired.' }] },
    'otp_invalid',
  )
}

const CODE_SENT = {
  fr: 'Si cette adresse peut se connecter, un code vient de lui être envoyé.',
  en: 'If this address can sign in, a code has just been sent to it.',
}
const LOGGED_OUT = { fr: 'Vous êtes déconnecté.', en: 'You are logged out.' }
const DELETED = { fr: 'Votre compte est supprimé.', en: 'Your account is deleted.' }
