import type { Keys } from '../keys.ts'
import { encrypt } from './encryption.ts'
import { buildLink, type Links } from './links.ts'
import { findRetryTime, judge } from './push-answer.ts'
import type { PushClient, PushRequest } from './push-client.ts'
import type { Endpoint, FindEndpoint } from './push-hosts.ts'
import { type Look, type LookDependencies, look, PUSH_CLASSES, type Push, type PushDelivery } from './push-look.ts'
import { buildTag, composeMessage } from './push-message.ts'
import { createRejectionCheck } from './push-rejections.ts'
import type { Report } from './push-report.ts'
import { removeGone } from './subscriptions.ts'
import type { Vapid } from './vapid.ts'

export type PushDependencies = LookDependencies & {
  keys: Keys
  vapid: Vapid
  client: PushClient
  findEndpoint: FindEndpoint
  links: Links
  report: Report
}

/**
 * The outcome of an attempt: a reason of `look`, a judgement of `judge`, or one of four more. `blocked` means that a
 * push service has rejected the pushes of several users, and taken none in between. `unlisted` means that PUSH_HOSTS no
 * longer contains the host. `keyless` means that this process does not have the key of the subscription, so another
 * process must send the push. `failed` means that the push service gave no answer, or asked us to try later.
 */
type Attempt = { outcome: string; retryAt?: Date; isReleased?: true }

/**
 * The maximum time from the beginning of a look until the request is written. After this time, a new look is needed.
 */
const MAX_LOOK_AGE_MS = 1_000
const MAX_LOOKS = 5

/**
 * Creates the function that makes one attempt to send a push.
 * @returns the function. It throws if the first look at the database fails
 */
export function sendPush(dependencies: PushDependencies): (delivery: PushDelivery) => Promise<Attempt> {
  const checkRejection = createRejectionCheck(dependencies.now)
  return async delivery => {
    const { now, report, client } = dependencies
    const first = await lookNow(dependencies, delivery)
    if (!first.push) return first.end
    const found = findTarget(dependencies, delivery, first.push.subscription)
    if ('outcome' in found) return found
    const { host } = found.url
    const last: { look: DatedLook } = { look: first }
    const answer = await client
      .post(found, async ({ isNew }) => {
        // A handshake takes time. So a new connection needs a new look.
        if (isNew) last.look = await lookNow(dependencies, delivery)
        for (let looks = 1; isOld(last.look); looks += 1) {
          if (looks > MAX_LOOKS) throw new Error('the database takes too long')
          last.look = await lookNow(dependencies, delivery)
        }
        return last.look.push && buildRequest(dependencies, delivery, last.look.push)
      })
      .catch((error: Error) => error)
    const { push, end } = last.look
    if (!push) return end
    if (!answer || answer instanceof Error) {
      report('warn', { host, reason: answer?.message }, 'a push was not sent and will be tried again')
      return { outcome: 'failed', retryAt: findRetryTime(delivery, undefined, now()) }
    }
    const attempt = checkRejection(judge(answer, delivery, now()), host, push.subscription)
    if (attempt.outcome === 'gone') {
      await removeGone(dependencies.sql, push.subscription, { ...dependencies, now: now() })
    } else if (attempt.outcome !== 'delivered') {
      const level = ['rejected', 'blocked'].includes(attempt.outcome) ? 'error' : 'warn'
      report(level, { host, status: answer.status, outcome: attempt.outcome }, 'a push service refused a push')
    }
    return attempt
  }
}

type DatedLook = Look & { startedAt: number }

async function lookNow(dependencies: LookDependencies, delivery: PushDelivery): Promise<DatedLook> {
  const startedAt = performance.now()
  return { ...(await look(dependencies, delivery)), startedAt }
}

function isOld({ push, startedAt }: DatedLook): boolean {
  return push !== undefined && performance.now() - startedAt > MAX_LOOK_AGE_MS
}

/** Returns the endpoint of a push, or the outcome if this process cannot send it. */
function findTarget(
  { findEndpoint, vapid, now, report }: PushDependencies,
  delivery: PushDelivery,
  { endpoint, public_key: publicKey }: Push['subscription'],
): Endpoint | Attempt {
  const target = findEndpoint(endpoint)
  if (!target) {
    report('error', { host: new URL(endpoint).host }, 'dropped a push because PUSH_HOSTS does not list its host')
    return { outcome: 'unlisted' }
  }
  if (vapid.publicKeys.includes(publicKey)) return target
  report('error', {}, KEYLESS)
  return { outcome: 'keyless', retryAt: findRetryTime(delivery, undefined, now()) }
}

const KEYLESS = 'left a push to another process because VAPID_PRIVATE_KEY does not contain the key of its subscription'

function buildRequest(
  { keys, vapid, links, now }: PushDependencies,
  delivery: PushDelivery,
  { subscription, notification, isExpired }: Push,
): PushRequest {
  const { id, type, title, message, locale, unread, data } = notification
  const isUrgent = delivery.class === PUSH_CLASSES.urgent
  const gameId = delivery.game_id ?? undefined
  const link = buildLink(links, data ?? {})
  const authorization = vapid.authorize(subscription.public_key, new URL(subscription.endpoint).origin, now())
  if (!link || !authorization) throw new Error('the subscription has another key now')
  const shown = { id, type, title, message: isExpired ? undefined : message, locale, gameId, isUrgent, unread, link }
  const leftMs = delivery.deadline ? delivery.deadline.getTime() - now().getTime() : 0
  return {
    headers: {
      Authorization: authorization,
      'Content-Encoding': 'aes128gcm',
      'Content-Type': 'application/octet-stream',
      TTL: String(Math.max(0, Math.floor(leftMs / 1_000))),
      Urgency: isUrgent ? 'high' : 'normal',
      Topic: keys.topic(subscription.user_id, buildTag(shown)),
    },
    body: encrypt(composeMessage(shown), {
      p256dh: Buffer.from(subscription.p256dh, 'base64url'),
      auth: Buffer.from(subscription.auth, 'base64url'),
    }),
  }
}
