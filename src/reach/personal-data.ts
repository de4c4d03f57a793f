import type { Sql } from '../db/sql.ts'
import { IS_BOUNCING } from './mail-state.ts'
import * as preferences from './preferences.ts'

const DAY_MS = 86_400_000
const MAX_WAIT_MS = 4 * DAY_MS
const MAX_UNCONFIRMED_MS = 90 * DAY_MS

/**
 * Deletes the deliveries to a user whose account is being deleted. The foreign keys delete all other rows of this
 * feature. Locks the rows in the order of their keys, as an event does that wakes the deliveries of a game.
 */
export async function eraseUser(tx: Sql, userId: number): Promise<void> {
  await tx`
    delete from outbox where id in (select id from outbox where user_id = ${userId} order by id for update)`
  await tx`
    delete from waiting_mail where user_id = ${userId} and notification_id in (
      select notification_id from waiting_mail where user_id = ${userId} order by notification_id for update)`
}

/**
 * Returns what this feature stores about a user, for `users export`. An endpoint is a secret, so the export contains
 * only its host.
 */
export async function exportUserData(sql: Sql, userId: number) {
  return {
    preferences: await preferences.exportUserData(sql, userId),
    push_subscriptions: await sql`
      select id, session_id, substring(endpoint from '^https?://([^/?#]+)') as push_service, time_zone, created_at,
        confirmed_at
      from push_subscription where user_id = ${userId} order by id`,
    waiting_mails: await sql`
      select notification_id, urgent, created_at, look_at from waiting_mail
      where user_id = ${userId} order by notification_id`,
    deliveries: await sql`
      select channel, created_at, due, deadline, notification_id, payload from outbox
      where user_id = ${userId} order by id`,
    last_mails: await sql`
      select ordinary_at, urgent_at, bounced_at from mail_state where user_id = ${userId}`,
    mail_attempts: await sql`
      select attempted_at, bounced from digest_attempt where user_id = ${userId} order by id`,
  }
}

/**
 * Deletes subscriptions whose session was ended or that no browser has confirmed for 90 days.
 * @param limit the maximum number of rows to delete
 * @returns the number of deleted rows
 */
export async function pruneSubscriptions(sql: Sql, now: Date, limit: number): Promise<number> {
  const deleted = await sql`
    delete from push_subscription where id in (
      select push_subscription.id from push_subscription join session on session.id = session_id
      where ended_at is not null or confirmed_at <= ${new Date(now.getTime() - MAX_UNCONFIRMED_MS)}
      limit ${limit})
    returning id`
  return deleted.length
}

/** Deletes attempts at mails that are older than a day. Parameters and result as above. */
export async function pruneAttempts(sql: Sql, now: Date, limit: number): Promise<number> {
  const deleted = await sql`
    delete from digest_attempt where id in (
      select id from digest_attempt where attempted_at <= ${new Date(now.getTime() - DAY_MS)} limit ${limit})
    returning id`
  return deleted.length
}

/** Deletes waiting notifications that no worker has handled, because the service no longer sends mails about them. */
export async function pruneWaiting(sql: Sql, now: Date, limit: number): Promise<number> {
  const deleted = await sql`
    delete from waiting_mail where (user_id, notification_id) in (
      select user_id, notification_id from waiting_mail
      where look_at <= ${new Date(now.getTime() - MAX_WAIT_MS)} limit ${limit})
    returning user_id`
  return deleted.length
}

/**
 * Forgets bounces of people who have signed in since. Call this before sessions are deleted: without the row of the
 * session, the bounce would count again.
 * @param limit the maximum number of rows to change
 * @returns the number of changed rows
 */
export async function forgetBounces(sql: Sql, limit: number): Promise<number> {
  const changed = await sql`
    update mail_state set bounced_at = null where user_id in (
      select user_id from mail_state where bounced_at is not null and not ${IS_BOUNCING}
      limit ${limit} for update skip locked)
    returning user_id`
  return changed.length
}
