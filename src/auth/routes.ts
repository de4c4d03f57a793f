import { audit } from '../audit.ts'
import type { Context } from '../context.ts'
import { invalid } from '../errors.ts'
import { Message } from '../http/message.ts'
import type { App } from '../http/route.ts'
import { Type } from '../http/type.ts'
import { preferredLanguage, requestedLanguage } from '../language.ts'
import { createCodeThrottle } from './code-throttle.ts'
import { readCredentials, readEmail } from './credentials.ts'
import { bearer } from './guard.ts'
import type { Tokens } from './jwt.ts'
import { Code, CodeSent, CredentialsRequest, OtpVerification, TokenResult } from './schema.ts'
import type { SessionCache } from './session-cache.ts'
import { sessionRoutes } from './session-routes.ts'
import { createSignIn, type SignIn } from './sign-in.ts'

type Dependencies = Pick<
  Context,
  'networks' | 'isSharedNetwork' | 'sql' | 'now' | 'config' | 'metrics' | 'wakeWorkers'
> & {
  tokens: Tokens
  cache: SessionCache
  signIn: SignIn
  /** Deletes all data of a user in every feature. */
  erase: (userId: number) => Promise<unknown>
}

/**
 * Adds the routes for codes and sessions, and the route that deletes an account. The deletion requires a code, and only
 * this feature checks codes. So the route for the deletion is in this feature.
 */
export function authRoutes(
  app: App,
  ctx: Context,
  { tokens, cache, erase }: Pick<Dependencies, 'tokens' | 'cache' | 'erase'>,
): void {
  const dependencies = { ...ctx, tokens, cache, erase, signIn: createSignIn({ ...ctx, tokens }) }
  codeRoutes(app, dependencies)
  sessionRoutes(app, dependencies)
  deletionRoute(app, dependencies)
}

function codeRoutes(app: App, dependencies: Dependencies): void {
  const { now, config, metrics, signIn, wakeWorkers } = dependencies
  const requestThrottle = createCodeThrottle(dependencies, 'request-otp', config.throttle.requestOtp)
  const verifyThrottle = createCodeThrottle(dependencies, 'verify-otp', config.throttle.verifyOtp)
  app.route({
    method: 'POST',
    url: '/api/v1/auth/request-otp',
    config: { access: 'public', throttled: true },
    onRequest: requestThrottle.onRequest,
    onSend: requestThrottle.onSend,
    schema: {
      tags: ['Auth'],
      operationId: 'requestOtp',
      summary: 'Request a one-time code to sign up or sign in',
      // The token is optional. Even an expired token selects the lane of its session.
      security: [{}, { bearer: [] }],
      body: CredentialsRequest,
      response: { 200: CodeSent },
    },
    handler: async (request, reply) => {
      const language = preferredLanguage(request.headers['accept-language'])
      const { email, profile } = readCredentials(request.body, config.termsVersion, now())
      await requestThrottle.countValid(request, reply, email)
      const sent = await signIn.requestCode({ email, profile, token: bearer(request), language })
      wakeWorkers()
      metrics.countCode(sent.outcome)
      // The answer has this header even if the service stored a decoy
      // (decisions.md, "the wait before the next code in a 200").
      reply.header('retry-after', sent.waitSeconds)
      return { message: CODE_SENT[language] }
    },
  })

  app.route({
    method: 'POST',
    url: '/api/v1/auth/verify-otp',
    config: { access: 'public', throttled: true },
    onRequest: verifyThrottle.onRequest,
    onSend: verifyThrottle.onSend,
    schema: {
      tags: ['Auth'],
      operationId: 'verifyOtp',
      summary: 'Exchange a code for an access token',
      // The token is optional. Even an expired token selects the lane of its session.
      security: [{}, { bearer: [] }],
      body: OtpVerification,
      response: { 200: TokenResult },
    },
    handler: async (request, reply) => {
      const language = requestedLanguage(request.headers['accept-language'])
      const email = readEmail(request.body.email)
      await verifyThrottle.countValid(request, reply, email)
      const { code } = request.body
      const signedIn = await signIn.verifyCode({ email, code, token: bearer(request), language })
      metrics.countCode(signedIn ? 'spent' : 'failed')
      if (!signedIn) {
        audit(request, 'sign_in_failed')
        throw wrongCode()
      }
      audit(request, signedIn.isNewUser ? 'sign_up' : 'sign_in', signedIn)
      return { access_token: signedIn.token, is_new_user: signedIn.isNewUser }
    },
  })
}

function deletionRoute(app: App, { metrics, cache, signIn, erase }: Dependencies): void {
  app.route({
    method: 'DELETE',
    url: '/api/v1/auth/me',
    schema: {
      tags: ['Auth'],
      operationId: 'deleteMe',
      summary: 'Delete the account of the signed-in user; requires a fresh code',
      body: Type.Object({ code: Code }),
      response: { 200: Message },
    },
    handler: async request => {
      const isOwner = await signIn.verifyOwner(request.caller, request.body.code)
      metrics.countCode(isOwner ? 'spent' : 'failed')
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
const DELETED = { fr: 'Votre compte est supprimé.', en: 'Your account is deleted.' }
