import type { Sql } from '../db/sql.ts'
import type { NotificationType } from '../notification-types.ts'
import type { StoredNotification } from './store.ts'

const HOUR_MS = 3_600_000
const URGENT_CANCELLATION_MS = 24 * HOUR_MS
const URGENT_REMINDER_MS = 3 * HOUR_MS

/** The channel of the outbox whose rows name new notifications. A worker makes the deliveries of each notification. */
const CHANNEL = 'announcement'

/** An item of the payload of such a row. */
export type Announced = { user: number; notification: number; urgent: boolean }

/**
 * Returns whether a notification is urgent: a cancellation within 24 hours before the start of the game, or a reminder
 * less than 3 hours before the start. This is decided once, when the notification is stored.
 */
export function isUrgent(type: NotificationType, startsAt: Date | undefined, now: Date): boolean {
  const leftMs = startsAt === undefined ? 0 : startsAt.getTime() - now.getTime()
  if (leftMs <= 0) return false
  if (type === 'game_cancelled') return leftMs <= URGENT_CANCELLATION_MS
  return type === 'game_reminder' && leftMs < URGENT_REMINDER_MS
}

/**
 * Adds one row to the outbox, in the transaction that stores the notifications. So the transaction costs one small
 * insert, even if the recipients have thousands of devices. Does not wait for the reply, which comes with the reply to
 * the commit.
 * @param urgentKeys the deduplication keys of the urgent notifications
 */
export function queueDeliveries(
  tx: Sql,
  stored: readonly StoredNotification[],
  urgentKeys: ReadonlySet<string>,
  now: Date,
): void {
  if (stored.length === 0) return
  const announced = stored.map(
    ({ userId, id, dedupKey }): Announced => ({ user: userId, notification: id, urgent: urgentKeys.has(dedupKey) }),
  )
  void tx`
    insert into outbox (channel, class, created_at, due, payload)
    values (${CHANNEL}, 1, ${now}, ${now}, ${JSON.stringify(announced)})`
}
