import type { FastifyRequest } from 'fastify'
import { audit } from '../audit.ts'
import type { Context } from '../context.ts'
import { type AppError, invalid } from '../errors.ts'
import { clientKey } from '../http/client-address.ts'
import { Message } from '../http/message.ts'
import type { App } from '../http/route.ts'
import type { RequestSlots } from '../http/slots.ts'
import { Type } from '../http/type.ts'
import { preferredLanguage, requestedLanguage, type Text } from '../language.ts'
import { createBuckets } from './budgets.ts'
import { createCodeThrottle } from './code-throttle.ts'
import { readCredentials, readEmail } from './credentials.ts'
import type { Tokens } from './jwt.ts'
import type { Rules } from './new-code.ts'
import { Code, CodeSent, CredentialsRequest, OtpVerification, TokenResult } from './schema.ts'
import type { SessionCache } from './session-cache.ts'
import { sessionRoutes } from './session-routes.ts'
import { createSignIn, type OwnerCheck, type SignIn, type Verified } from './sign-in.ts'

type Dependencies = Pick<Context, 'networks' | 'isSharedNetwork' | 'sql' | 'now' | 'config' | 'metrics'> & {
  tokens: Tokens
  cache: SessionCache
  signIn: SignIn
  slots: RequestSlots
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
  { tokens, cache, slots, erase }: Pick<Dependencies, 'tokens' | 'cache' | 'slots' | 'erase'>,
): void {
  const dependencies = {
    ...ctx,
    tokens,
    cache,
    slots,
    erase,
    signIn: createSignIn({
      ...ctx,
      tokens,
      slots,
      rules: createRules(ctx.config),
      sessionDays: ctx.config.sessionDays,
    }),
  }
  codeRoutes(app, dependencies)
  sessionRoutes(app, dependencies)
  deletionRoute(app, dependencies)
}

function createRules({ guessBudgets, signUpLimits }: Context['config']): Rules {
  return { buckets: createBuckets(guessBudgets), signUpLimits }
}

function codeRoutes(app: App, dependencies: Dependencies): void {
  const { config, metrics, signIn, isSharedNetwork } = dependencies
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
      // The token is optional. A known client sends its token, even if the token has expired.
      security: [{}, { bearer: [] }],
      body: CredentialsRequest,
      response: { 200: CodeSent },
    },
    handler: async (request, reply) => {
      const language = requestedLanguage(request.headers['accept-language'])
      const { email, profile } = readCredentials(request.body, config.termsVersion)
      const known = await requestThrottle.countValid(request, reply, email)
      const sent = await signIn.requestCode({
        email,
        known,
        client: clientKey(request),
        profile,
        language,
        isShared: isSharedNetwork(request),
      })
      metrics.countCode(sent.outcome)
      // The answer has this header even if the service stored a decoy
      // (decisions.md, "the wait before the next code in a 200").
      reply.header('retry-after', sent.waitSeconds)
      return { message: CODE_SENT[language ?? 'fr'] }
    },
  })

  app.route({
    method: 'POST',
    url: '/api/v1/auth/verify-otp',
    config: { access: 'public', throttled: true, waitsForSlot: true },
    onRequest: verifyThrottle.onRequest,
    onSend: verifyThrottle.onSend,
    schema: {
      tags: ['Auth'],
      operationId: 'verifyOtp',
      summary: 'Exchange a code for an access token',
      // The token is optional. A known client sends its token, even if the token has expired.
      security: [{}, { bearer: [] }],
      body: OtpVerification,
      response: { 200: TokenResult },
    },
    handler: async (request, reply) => {
      const language = requestedLanguage(request.headers['accept-language'])
      const email = readEmail(request.body.email)
      const known = await verifyThrottle.countValid(request, reply, email)
      const { code } = request.body
      const verified = await signIn.verifyCode({ email, code, known, client: clientKey(request), language })
      reportGuess(request, verified, metrics)
      if (verified.outcome !== 'signed-in') {
        if (verified.outcome === 'wrong') audit(request, 'sign_in_failed')
        throw toCodeError(verified)
      }
      const { signedIn } = verified
      audit(request, signedIn.isNewUser ? 'sign_up' : 'sign_in', signedIn)
      return { access_token: signedIn.token, is_new_user: signedIn.isNewUser }
    },
  })
}

function deletionRoute(app: App, { metrics, cache, signIn, erase }: Dependencies): void {
  app.route({
    method: 'DELETE',
    url: '/api/v1/auth/me',
    config: { waitsForSlot: true },
    schema: {
      tags: ['Auth'],
      operationId: 'deleteMe',
      summary: 'Delete the account of the signed-in user; requires a fresh code',
      body: Type.Object({ code: Code }),
      response: { 200: Message },
    },
    handler: async request => {
      const checked = await signIn.verifyOwner(request.caller, clientKey(request), request.body.code)
      reportGuess(request, checked, metrics)
      if (checked.outcome !== 'right') {
        if (checked.outcome === 'wrong') audit(request, 'deletion_failed')
        throw toCodeError(checked)
      }
      await erase(request.caller.userId)
      cache.forget({ userId: request.caller.userId })
      audit(request, 'deletion')
      return { message: DELETED[preferredLanguage(request.headers['accept-language'])] }
    },
  })
}

/** Counts a guess, and audits a guess that spent the budget of the installation. */
function reportGuess(
  request: FastifyRequest,
  { outcome, hasSpentBudget }: Verified | OwnerCheck,
  metrics: Context['metrics'],
): void {
  metrics.countCode(outcome === 'wrong' ? 'failed' : outcome === 'continue' ? 'continued' : 'spent')
  if (hasSpentBudget) audit(request, 'guess_budget_spent', undefined)
}

function toCodeError(refusal: { outcome: 'wrong' } | { outcome: 'continue'; nextPart: number } | OwnerCheck): AppError {
  if (refusal.outcome === 'continue') return invalid({ code: [ENTER_PART[refusal.nextPart]!] }, 'otp_continue')
  return invalid({ code: [WRONG_CODE] }, 'otp_invalid')
}

const WRONG_CODE = {
  fr: 'Ce code est incorrect ou a expiré. Demandez un nouveau code.',
  en: 'This code is wrong or has expired. Request a new code.',
}
/** The text for each part that is due, by the index of the part. The first part is never due after a right part. */
const ENTER_PART: Record<number, Text> = {
  1: { fr: 'Saisissez maintenant les quatre chiffres suivants.', en: 'Now enter the next four digits.' },
  2: { fr: 'Saisissez maintenant les quatre derniers chiffres.', en: 'Now enter the last four digits.' },
}
const CODE_SENT = {
  fr: 'Si cette adresse peut se connecter, un code vient de lui être envoyé.',
  en: 'If this address can sign in, a code has just been sent to it.',
}
const DELETED = { fr: 'Votre compte est supprimé.', en: 'Your account is deleted.' }
