import type { FastifyBaseLogger } from 'fastify'
import type { Database, Sql } from '../db/sql.ts'
import type { Keys } from '../keys.ts'
import type { Mailer, MailFailure } from '../mail/mailer.ts'
import type { UnreadNotification } from '../notifications/unread.ts'
import { settleAttempt } from './bounces.ts'
import { composeDigestEmail, type DigestTexts } from './digest-email.ts'
import { isSame, type Look, type LookDeps, look, type NoMail } from './digest-look.ts'
import { type MailPayload, replaceTime, storeDeparture } from './mail-state.ts'
import { findGameId } from './timing.ts'
import { buildUnsubscribeUrl } from './unsubscribe.ts'
import { addWaiting } from './waiting-mail.ts'

export type DigestDeps = LookDeps & {
  sql: Database
  mailer: Mailer
  keys: Keys
  log: FastifyBaseLogger
  texts: DigestTexts
  /** The address of the service for unsubscribe links, and the domain of the sender. */
  publicUrl: string
  domain: string
  countWithdrawnBounces: (count: number) => void
}

/** A row of the outbox that `saveMails` has added. */
type Delivery = {
  id: number
  lease: string
  created_at: Date
  attempts: number
  user_id: number | null
  payload: unknown
}

/**
 * The outcome of an attempt. `gone`, `bounced`, `off`, `stale` and `read` are the reasons why no mail leaves.
 * `deferred`: the quiet hours of the person have begun. `refused`: the mail server refused the mail for good.
 */
type Attempt = {
  outcome: 'delivered' | 'refused' | 'failed' | 'deferred' | NoMail
  retryAt?: Date
  isReleased?: true
}

const MIN_BACKOFF_MS = 30_000
const MAX_BACKOFF_MS = 15 * 60_000
/** If the content leaves later than this after the look, the sender looks again. */
const MAX_LOOK_AGE_MS = 1_000
const MAX_TRIES = 3

/**
 * Creates the function that mails unread notifications. It looks again before it sends, so the mail leaves out what the
 * person has read, deleted or switched off since the mail was added to the outbox. If the mail server is slow, it looks
 * once more just before the content leaves. If something has changed, it composes the mail anew.
 */
export function sendDigest(deps: DigestDeps): (delivery: Delivery) => Promise<Attempt> {
  const { sql, log } = deps
  return async delivery => {
    const { user_id: userId, payload } = delivery
    if (userId === null || !isPayload(payload)) {
      log.error('dropped a mail about unread notifications because its row is malformed')
      return { outcome: 'gone' }
    }
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      const found = await look(deps, userId, payload.notification_ids)
      if (typeof found === 'string') {
        await giveTimeBack(sql, delivery, payload)
        return { outcome: found }
      }
      if (found.isQuiet) return putBack(deps, delivery, payload, found.notifications)
      const attempt = await send(deps, delivery, found)
      if (attempt) return attempt
    }
    return { outcome: 'failed', retryAt: findRetryTime(deps, delivery) }
  }
}

/** Sends the mail. @returns undefined if something has changed before the content left */
async function send(deps: DigestDeps, delivery: Delivery, found: Look): Promise<Attempt | undefined> {
  const { sql, mailer, now, log } = deps
  const userId = delivery.user_id!
  const { notification_ids: ids, urgent: isUrgent } = delivery.payload as MailPayload
  let restoreTime = async () => {}
  const isCurrent = async () => {
    // The mailer calls this function again if the connection broke before the content left.
    const restoreEarlier = restoreTime
    const restore = await storeDeparture(sql, { userId, isUrgent }, now())
    restoreTime = async () => {
      await restore()
      await restoreEarlier()
    }
    if (now().getTime() - found.at.getTime() <= MAX_LOOK_AGE_MS) return true
    return isSame(found, await look(deps, userId, ids))
  }
  try {
    await mailer.send(composeMail(deps, delivery, found), isCurrent)
  } catch (error) {
    const failure = error as MailFailure
    if (failure.permanent === undefined) {
      // The database failed just before the content left. If it still fails, the time stays.
      await restoreTime().catch(() => {})
      throw failure
    }
    const isWithdrawn = failure.name === 'MailWithdrawn'
    if (isWithdrawn || (failure.isAnswer && !failure.permanent)) await restoreTime()
    if (isWithdrawn) return undefined
    // While the mail server is down, it judges no address. So failed attempts must not lower the share of bounces.
    if (failure.permanent && failure.isAnswer) await settleAttempt(deps, userId, failure.isHardBounce)
    log.warn({ id: delivery.id, attempt: delivery.attempts, reason: failure.message }, 'did not mail a digest')
    if (failure.permanent) return { outcome: 'refused' }
    return { outcome: 'failed', retryAt: findRetryTime(deps, delivery) }
  }
  await settleAttempt(deps, userId, false)
  return { outcome: 'delivered' }
}

function findRetryTime({ now }: DigestDeps, { attempts }: Delivery): Date {
  return new Date(now().getTime() + Math.min(MIN_BACKOFF_MS * 2 ** (attempts - 1), MAX_BACKOFF_MS))
}

function composeMail({ keys, texts, publicUrl, domain }: DigestDeps, delivery: Delivery, found: Look) {
  const { person, notifications } = found
  const userId = delivery.user_id!
  const { urgent } = delivery.payload as MailPayload
  const digest = {
    firstName: person.first_name,
    language: person.locale,
    notifications,
    findUnsubscribeUrl: (type?: UnreadNotification['type']) => buildUnsubscribeUrl(keys, publicUrl, userId, type),
  }
  return {
    to: person.email,
    ...composeDigestEmail(digest, texts),
    headers: {
      // A retry sends the same id, so a mail server can recognize a mail that it already has.
      'Message-ID': `<digest.${delivery.id}.${delivery.created_at.getTime().toString(36)}@${domain}>`,
      // RFC 8058: the mail program of the receiver sends a POST to this address.
      'List-Unsubscribe': `<${buildUnsubscribeUrl(keys, publicUrl, userId)}>`,
      'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
      'List-Id': `<notifications.${domain}>`,
      'Feedback-ID': `${urgent ? 'urgent' : 'ordinary'}:digest:notifications:courtside`,
    },
  }
}

/**
 * Gives the notifications of a mail back to `waiting_mail`, because quiet hours have begun. There, a change of the
 * quiet hours or of a game wakes them.
 */
async function putBack(
  { sql, now }: DigestDeps,
  delivery: Delivery,
  payload: MailPayload,
  notifications: readonly UnreadNotification[],
): Promise<Attempt> {
  const urgentIds = new Set(payload.urgent_ids)
  await sql.begin(async tx => {
    // The deletion of an account locks the account before its rows of the outbox.
    const locked = await tx`select id from app_user where id = ${delivery.user_id} for key share`
    const taken = await tx`delete from outbox where id = ${delivery.id} and lease = ${delivery.lease} returning id`
    if (locked.length === 0 || taken.length === 0) return
    await giveTimeBack(tx, delivery, payload)
    await addWaiting(
      tx,
      notifications.map(notification => ({
        userId: notification.userId,
        notificationId: notification.id,
        gameId: findGameId(notification),
        isUrgent: urgentIds.has(notification.id),
        createdAt: notification.createdAt,
        lookAt: now(),
      })),
    )
  })
  return { outcome: 'deferred', isReleased: true }
}

/**
 * Removes the time of a mail from the limits, because the mail does not leave. After an attempt whose outcome is
 * unknown, the mail may have left. `storeDeparture` has then stored a later time, and this function keeps it.
 */
async function giveTimeBack(sql: Sql, { user_id, created_at }: Delivery, { urgent }: MailPayload) {
  await replaceTime(sql, { userId: user_id!, isUrgent: urgent }, created_at, null)
}

function isPayload(value: unknown): value is MailPayload {
  const { notification_ids: ids, urgent_ids: urgentIds } = (value ?? {}) as Record<string, unknown>
  return Array.isArray(ids) && Array.isArray(urgentIds)
}
