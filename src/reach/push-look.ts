import type { Query, Sql } from '../db/sql.ts'
import type { Language } from '../language.ts'
import type { NotificationType } from '../notification-types.ts'
import { defer } from './defer.ts'
import { type PreferenceDefaults, readAll } from './preferences.ts'
import { type BrowserValues, removeEnded } from './subscriptions.ts'
import { findDelay, type GameState, isStale, toTimed } from './timing.ts'

/** The classes of pushes in the outbox. Pushes of a lower class go first. */
export const PUSH_CLASSES = { urgent: 1, other: 2 } as const

/** A row of the outbox that stands for one push to one subscription. */
export type PushDelivery = {
  id: number
  lease: string
  class: number
  attempts: number
  user_id: number | null
  game_id: number | null
  notification_id: number | null
  subscription_id: number | null
  deadline: Date | null
}

/** The outcome of an attempt without a request to the push service, or the state of a push that may leave. */
export type Look = { end: { outcome: string; isReleased?: true }; push?: undefined } | { push: Push; end?: undefined }

/** A push that may leave. */
export type Push = {
  subscription: BrowserValues & { public_key: string }
  notification: Notification
  /** Whether the session of the subscription has reached its natural end. */
  isExpired: boolean
}

type Notification = {
  id: number
  type: NotificationType
  title: string
  message: string
  data: Record<string, unknown> | null
  locale: Language
  unread: number
}

type SubscriptionRow = Push['subscription'] & {
  is_ended: boolean
  is_expired: boolean
  game_id: number | null
  starts_at: Date | null
  cancelled: boolean | null
}

export type LookDependencies = { sql: Sql; readSql: Query; defaults: PreferenceDefaults; now: () => Date }

/** How often a worker looks again because preferences or the game changed while it deferred a push. */
const MAX_DEFERRALS = 10

/**
 * Checks whether a push may leave. Drops a push that must not leave, and defers a push in quiet hours. The statements
 * of a look are sent together.
 */
export async function look(dependencies: LookDependencies, delivery: PushDelivery): Promise<Look> {
  for (let tries = 0; tries < MAX_DEFERRALS; tries += 1) {
    const result = await lookOnce(dependencies, delivery)
    if (result) return result
  }
  throw new Error('preferences or the game changed at each attempt to defer a push')
}

/** Returns undefined if the push must wait, but preferences or the game changed before the row was written. */
async function lookOnce(
  { sql, readSql, defaults, now }: LookDependencies,
  delivery: PushDelivery,
): Promise<Look | undefined> {
  const { user_id: userId, game_id: gameId, notification_id: notificationId, subscription_id: id } = delivery
  if (userId === null || notificationId === null || id === null) return drop('malformed')
  const instant = now()
  const [subscription, notification, preferences] = await Promise.all([
    readSubscription(readSql, { id, userId, gameId }, instant),
    readNotification(readSql, userId, notificationId),
    readAll(readSql, [userId], defaults).then(all => all.get(userId)),
  ])
  // Each statement has a separate snapshot. So the account may be gone although the subscription was found.
  if (!subscription || !preferences) return drop('gone')
  if (subscription.is_ended) {
    await removeEnded(sql, subscription, { defaults, now: instant })
    return drop('session')
  }
  if (!notification) return drop('read')
  if (!preferences.types[notification.type]?.push) return drop('off')
  const game = toGame(subscription)
  const timed = toTimed({ type: notification.type, data: notification.data ?? {} })
  if (isStale(timed, game, instant)) return drop('stale')
  if (delivery.deadline && delivery.deadline <= instant) return drop('expired')
  const until = findDelay(timed, game, preferences, instant)
  if (!until) return { push: { subscription, notification, isExpired: subscription.is_expired } }
  const seen = { userId, version: preferences.version, gameId, game }
  return (await defer(sql, delivery, until, seen)) ? { end: { outcome: 'deferred', isReleased: true } } : undefined
}

function drop(outcome: string): Look {
  return { end: { outcome } }
}

async function readSubscription(
  sql: Query,
  { id, userId, gameId }: { id: number; userId: number; gameId: number | null },
  now: Date,
): Promise<SubscriptionRow | undefined> {
  const [row] = await sql<SubscriptionRow>`
    select push_subscription.id, push_subscription.user_id, endpoint, p256dh, auth, public_key,
      ended_at is not null as is_ended, expires_at <= ${now} as is_expired,
      game.id as game_id, game.starts_at, game.cancelled
    from push_subscription join session on session.id = session_id left join game on game.id = ${gameId}
    where push_subscription.id = ${id} and push_subscription.user_id = ${userId}`
  return row
}

/** Returns an unread notification, with the number of all unread notifications of the user. */
async function readNotification(sql: Query, userId: number, id: number): Promise<Notification | undefined> {
  const [row] = await sql<Notification>`
    select id, type, title, message, data, locale,
      (select count(*) from notification where user_id = ${userId} and read_at is null) as unread
    from notification where user_id = ${userId} and id = ${id} and read_at is null`
  return row
}

function toGame({ game_id, starts_at, cancelled }: SubscriptionRow): GameState | undefined {
  return game_id === null ? undefined : { startsAt: starts_at ?? undefined, cancelled: cancelled === true }
}
