import type { FastifyBaseLogger } from 'fastify'
import type { Database, Sql } from '../db/sql.ts'
import * as games from '../games/games.ts'
import type { Keys } from '../keys.ts'
import type { Language } from '../language.ts'
import type { Mailer, MailFailure } from '../mail/mailer.ts'
import { readUnread, type UnreadNotification } from '../notifications/unread.ts'
import { settleAttempt } from './bounces.ts'
import { composeDigestEmail, type DigestTexts } from './digest-email.ts'
import { IS_BOUNCING, type MailPayload } from './mail-state.ts'
import { wantsMail } from './plan-mail.ts'
import { type PreferenceDefaults, readAll } from './preferences.ts'
import { findDelay, findGameId, isStale, toTimed } from './timing.ts'
import { buildUnsubscribeUrl } from './unsubscribe.ts'
import { addWaiting } from './waiting-mail.ts'

export type DigestDeps = {
  sql: Database
  mailer: Mailer
  keys: Keys
  now: () => Date
  log: FastifyBaseLogger
  preferenceDefaults: PreferenceDefaults
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
 * The outcome of an attempt. `gone`, `bounced`, `off`, `stale` and `read` are the reasons why no mail leaves. `deferred`:
 * the quiet hours of the person have begun. `refused`: the mail server refused the mail for good.
 */
type Attempt = {
  outcome: 'delivered' | 'refused' | 'failed' | 'deferred' | 'gone' | 'bounced' | 'off' | 'stale' | 'read'
  retryAt?: Date
  isReleased?: true
}

type Person = { email: string; first_name: string; locale: Language; is_bouncing: boolean | null }
type Look = { person: Person; notifications: UnreadNotification[]; isQuiet: boolean }

const MIN_BACKOFF_MS = 30_000
const MAX_BACKOFF_MS = 15 * 60_000

/**
 * Creates the function that mails unread notifications. It looks again before it sends, so the mail leaves out what the
 * person has read, deleted or switched off since the mail was added to the outbox.
 */
export function sendDigest(deps: DigestDeps): (delivery: Delivery) => Promise<Attempt> {
  const { sql, mailer, now, log } = deps
  return async delivery => {
    const { user_id: userId, payload } = delivery
    if (userId === null || !isPayload(payload)) {
      log.error('dropped a mail about unread notifications because its row is malformed')
      return { outcome: 'gone' }
    }
    const look = await lookAgain(deps, userId, payload)
    if (typeof look === 'string') {
      await giveTimeBack(sql, delivery, payload)
      return { outcome: look }
    }
    if (look.isQuiet) return putBack(deps, delivery, payload, look.notifications)
    try {
      await mailer.send(composeMail(deps, delivery, look))
    } catch (error) {
      const failure = error as MailFailure
      if (failure.permanent === undefined) throw failure
      const result = failure.isHardBounce ? 'bounced' : 'failed'
      await settleAttempt(deps, userId, { result, isUrgent: payload.urgent })
      log.warn({ id: delivery.id, attempt: delivery.attempts, reason: failure.message }, 'did not mail a digest')
      if (failure.permanent) return { outcome: 'refused' }
      const waitMs = Math.min(MIN_BACKOFF_MS * 2 ** (delivery.attempts - 1), MAX_BACKOFF_MS)
      return { outcome: 'failed', retryAt: new Date(now().getTime() + waitMs) }
    }
    await settleAttempt(deps, userId, { result: 'delivered', isUrgent: payload.urgent })
    return { outcome: 'delivered' }
  }
}

/** Reads what the mail may mention now. @returns the reason if no mail may leave */
async function lookAgain(
  { sql, now, preferenceDefaults }: DigestDeps,
  userId: number,
  { notification_ids: ids }: MailPayload,
): Promise<Look | Attempt['outcome']> {
  const wanted = ids.map(id => ({ userId, id }))
  const [[person], unread, allPreferences] = await Promise.all([
    sql<Person>`
      select email, first_name, locale, ${IS_BOUNCING} as is_bouncing
      from app_user left join mail_state on mail_state.user_id = app_user.id where app_user.id = ${userId}`,
    readUnread(sql, wanted),
    readAll(sql, [userId], preferenceDefaults),
  ])
  if (!person) return 'gone'
  if (person.is_bouncing) return 'bounced'
  if (unread.length === 0) return 'read'
  const preferences = allPreferences.get(userId)!
  const on = unread.filter(({ type }) => wantsMail(preferences, type))
  if (on.length === 0) return 'off'
  const states = await games.readStates(
    sql,
    on.map(findGameId).filter(id => id !== null),
  )
  const findGame = (notification: UnreadNotification) => states.get(findGameId(notification) ?? -1)
  const current = on.filter(each => !isStale(toTimed(each), findGame(each), now()))
  if (current.length === 0) return 'stale'
  const isQuiet = current.every(each => findDelay(toTimed(each), findGame(each), preferences, now()))
  return { person, notifications: current.toReversed(), isQuiet }
}

function composeMail({ keys, texts, publicUrl, domain }: DigestDeps, delivery: Delivery, look: Look) {
  const { person, notifications } = look
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
 * Gives the notifications of a mail back to `waiting_mail`, because quiet hours have begun. There, a change of the quiet
 * hours or of a game wakes them.
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

/** Takes the time of a mail that does not leave out of the limits. After a failed attempt, the mail may have left. */
async function giveTimeBack(sql: Sql, { user_id, created_at, attempts }: Delivery, { urgent }: MailPayload) {
  if (attempts > 1) return
  await sql`
    update mail_state set ordinary_at = case when ${urgent} then ordinary_at else null end,
      urgent_at = case when ${urgent} then null else urgent_at end
    where user_id = ${user_id} and case when ${urgent} then urgent_at else ordinary_at end = ${created_at}`
}

function isPayload(value: unknown): value is MailPayload {
  const { notification_ids: ids, urgent_ids: urgentIds } = (value ?? {}) as Record<string, unknown>
  return Array.isArray(ids) && Array.isArray(urgentIds)
}
