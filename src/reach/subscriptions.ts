import type { Query, Sql } from '../db/sql.ts'
import { watchTimeZone } from './device-zone.ts'
import type { PreferenceDefaults } from './preferences.ts'

/** The maximum number of subscriptions of a user. */
const MAX_SUBSCRIPTIONS = 10

/** A subscription as a client sends it. `publicKey` is one of the keys of this service. */
export type SentSubscription = {
  endpoint: string
  p256dh: string
  auth: string
  publicKey: string | undefined
  timeZone: string | undefined
}

/** `is_new` is false if the row existed before and was confirmed. */
export type StoredSubscription = { id: number; created_at: Date; is_new: boolean }

type Owner = { userId: number; sessionId: string }
type Settings = { newestKey: string; defaults: PreferenceDefaults; now: Date }

/**
 * Stores a subscription, or confirms it. A user has at most 10: the least recently confirmed ones are deleted. If the
 * endpoint belongs to another user, deletes that row and makes a new one, so a shared browser never notifies the
 * previous person. Without `publicKey`, an earlier row of the same browser key keeps its key.
 * @returns undefined if the user's session or account has ended
 */
export async function put(
  sql: Sql,
  { userId, sessionId }: Owner,
  sent: SentSubscription,
  settings: Settings,
): Promise<StoredSubscription | undefined> {
  return watchTimeZone(sql, userId, settings, async tx => {
    // A concurrent logout either waits for this lock, or has ended the session before. In the first case, the worker
    // finds the ended session when it looks at the subscription.
    const running = await tx`
      select from session where id = ${sessionId} and user_id = ${userId} and ended_at is null for share`
    if (running.length === 0) return undefined
    for (;;) {
      const [stored] = await store(tx, { userId, sessionId }, sent, settings)
      // Without a row, another user has stored the endpoint since the statement began.
      if (!stored) continue
      await removeOldest(tx, userId)
      return stored
    }
  })
}

function store(tx: Sql, { userId, sessionId }: Owner, sent: SentSubscription, { newestKey, now }: Settings) {
  const { endpoint, p256dh, auth, publicKey = null, timeZone = null } = sent
  return tx<StoredSubscription>`
    with taken as (
      delete from push_subscription where endpoint = ${endpoint} and user_id <> ${userId}
      returning p256dh, public_key
    )
    insert into push_subscription as mine
      (user_id, session_id, endpoint, p256dh, auth, public_key, time_zone, created_at, confirmed_at)
    select ${userId}::bigint, ${sessionId}::uuid, ${endpoint}::text, ${p256dh}::text, ${auth}::text,
      coalesce(${publicKey}::text, max(public_key) filter (where p256dh = ${p256dh}), ${newestKey}),
      ${timeZone}::text, ${now}::timestamptz, ${now}::timestamptz
    from taken
    on conflict on constraint push_subscription_endpoint_key do update set
      session_id = excluded.session_id, p256dh = excluded.p256dh, auth = excluded.auth,
      public_key = coalesce(${publicKey},
        case when mine.p256dh = excluded.p256dh then mine.public_key end, ${newestKey}),
      time_zone = coalesce(excluded.time_zone, mine.time_zone), confirmed_at = excluded.confirmed_at
    where mine.user_id = excluded.user_id
    returning id, created_at, xmax = 0 as is_new`
}

/** Another transaction that has locked a row takes or deletes it anyway. So waiting for it could only deadlock. */
async function removeOldest(tx: Sql, userId: number): Promise<void> {
  await tx`
    delete from push_subscription where id in (
      select id from push_subscription where user_id = ${userId} and id not in (
        select id from push_subscription where user_id = ${userId}
        order by confirmed_at desc, id desc limit ${MAX_SUBSCRIPTIONS})
      for update skip locked)`
}

/** Deletes the subscription of an endpoint, if it belongs to the user. @returns whether it did */
export async function remove(
  sql: Sql,
  userId: number,
  endpoint: string,
  settings: Omit<Settings, 'newestKey'>,
): Promise<boolean> {
  const removed = await watchTimeZone(
    sql,
    userId,
    settings,
    tx => tx`delete from push_subscription where user_id = ${userId} and endpoint = ${endpoint} returning id`,
  )
  return removed !== undefined && removed.length > 0
}

/** The values that a browser makes anew when it subscribes again. */
export type BrowserValues = { id: number; user_id: number; endpoint: string; p256dh: string; auth: string }

/**
 * Deletes a subscription that the push service no longer knows. Keeps it if the browser has subscribed again meanwhile.
 */
export async function removeGone(sql: Sql, gone: BrowserValues, settings: Omit<Settings, 'newestKey'>): Promise<void> {
  await watchTimeZone(sql, gone.user_id, settings, async tx => {
    await tx`
      delete from push_subscription
      where id = ${gone.id} and endpoint = ${gone.endpoint} and p256dh = ${gone.p256dh} and auth = ${gone.auth}`
  })
}

/** Deletes a subscription whose session was ended before its time. */
export async function removeEnded(
  sql: Sql,
  ended: { id: number; user_id: number },
  settings: Omit<Settings, 'newestKey'>,
): Promise<void> {
  await watchTimeZone(sql, ended.user_id, settings, async tx => {
    await tx`
      delete from push_subscription using session
      where push_subscription.id = ${ended.id} and session.id = session_id and session.ended_at is not null`
  })
}

/** Returns whether the session exists, and was not ended before its time. Its natural end may have passed. */
export async function hasOpenSession(sql: Query, { userId, sessionId }: Owner): Promise<boolean> {
  const found = await sql`
    select from session where id = ${sessionId} and user_id = ${userId} and ended_at is null`
  return found.length > 0
}
