import { findLatestStart } from '../auth/clock-tolerance.ts'
import type { Query, Sql } from '../db/sql.ts'
import { fragment } from '../db/statement.ts'
import { MAIL_CLASSES } from '../limits/mail-backlog.ts'
import type { MailState } from './plan-mail.ts'

/** The time for which workers try to send a mail about unread notifications. */
const DEADLINE_MS = 24 * 3_600_000

/** A mail about unread notifications, before it is in the outbox. */
export type NewMail = { userId: number; isUrgent: boolean; ids: number[]; urgentIds: number[] }

/** The payload of such a mail in the outbox. `urgent` says whether the limit of urgent mails counts it. */
export type MailPayload = { notification_ids: number[]; urgent_ids: number[]; urgent: boolean }

/** Names one of the two limits of a person: for urgent or for ordinary mails. */
export type Limit = { userId: number; isUrgent: boolean }

/** Whether the address of `mail_state.user_id` refused a mail for good, and the person has not signed in since. */
export const IS_BOUNCING = fragment`
  (bounced_at is not null and not exists (
    select from session where session.user_id = mail_state.user_id and session.created_at > bounced_at))`

/**
 * Locks the states of people, except those that another worker has locked. With `exists`, PostgreSQL would read the
 * whole outbox to find the urgent mails. So the statement contains a scalar subquery.
 */
export async function lockStates(tx: Sql, userIds: readonly number[], now: Date): Promise<Map<number, MailState>> {
  const rows = await tx<{
    user_id: number
    ordinary_at: Date | null
    urgent_at: Date | null
    has_urgent_mail: boolean
    is_bouncing: boolean
  }>`
    select user_id, ordinary_at, urgent_at, ${IS_BOUNCING} as is_bouncing,
      (
        select true from outbox
        where outbox.user_id = mail_state.user_id and channel = 'mail' and class = ${MAIL_CLASSES.urgentDigest}
          and (payload ->> 'urgent')::boolean and deadline > ${now}
        limit 1
      ) is not null as has_urgent_mail
    from mail_state where user_id = any(${userIds}::bigint[]) order by user_id for update skip locked`
  return new Map(
    rows.map(row => [
      row.user_id,
      {
        ordinaryAt: row.ordinary_at ?? undefined,
        urgentAt: row.urgent_at ?? undefined,
        hasUrgentMail: row.has_urgent_mail,
        isBouncing: row.is_bouncing,
      },
    ]),
  )
}

/**
 * Adds mails to the outbox, and stores their time for the limits. The caller has locked the states.
 * @param hashReceiver returns the keyed hash by which receivers take turns
 */
export async function saveMails(
  tx: Sql,
  mails: readonly NewMail[],
  hashReceiver: (userId: number) => Promise<Buffer>,
  now: Date,
): Promise<void> {
  if (mails.length === 0) return
  const userIds = mails.map(({ userId }) => userId)
  const isUrgent = mails.map(mail => mail.isUrgent)
  const hasUrgent = mails.map(({ urgentIds }) => urgentIds.length > 0)
  const payloads = mails.map(({ ids, urgentIds, isUrgent: urgent }): MailPayload => {
    return { notification_ids: ids, urgent_ids: urgentIds, urgent }
  })
  const networks = await Promise.all(userIds.map(hashReceiver))
  await Promise.all([
    tx`
      insert into outbox (channel, class, network, created_at, due, user_id, deadline, payload)
      select 'mail', case when has_urgent then ${MAIL_CLASSES.urgentDigest}::smallint else ${MAIL_CLASSES.digest} end,
        network, ${now}, ${now}, user_id, ${new Date(now.getTime() + DEADLINE_MS)}, payload
      from unnest(${userIds}::bigint[], ${hasUrgent}::boolean[], ${networks}::bytea[],
        ${payloads.map(payload => JSON.stringify(payload))}::jsonb[]) as mail (user_id, has_urgent, network, payload)`,
    tx`
      update mail_state set ordinary_at = case when urgent then ordinary_at else ${now} end,
        urgent_at = case when urgent then ${now} else urgent_at end
      from unnest(${userIds}::bigint[], ${isUrgent}::boolean[]) as mail (user_id, urgent)
      where mail_state.user_id = mail.user_id`,
  ])
}

/**
 * Stores that a mail leaves now. The sender calls this function just before the content leaves. So the limits count the
 * mail even if the worker is killed before it knows the outcome. The stored time is always later than the time that
 * `saveMails` has stored, also if the clock of this process is behind.
 * @returns a function that restores the previous time. Call it if the server did not take the mail
 */
export async function storeDeparture(sql: Query, limit: Limit, now: Date): Promise<() => Promise<void>> {
  const column = findColumn(limit)
  const [time] = await sql<{ before: string | null; after: string }>`
    with stored as (
      select user_id, ${column} as before from mail_state where user_id = ${limit.userId} for update
    )
    update mail_state set ${column} = greatest(
      case when before <= ${findLatestStart(now)} then before + interval '1 microsecond' end, ${now})
    from stored where mail_state.user_id = stored.user_id
    returning before::text, ${column}::text as after`
  return async () => {
    if (time) await replaceTime(sql, limit, time.after, time.before)
  }
}

/** Replaces the time of the last mail if it is still `from`. If `to` is null, the next mail may leave immediately. */
export async function replaceTime(
  sql: Query,
  limit: Limit,
  from: Date | string,
  to: Date | string | null,
): Promise<void> {
  const column = findColumn(limit)
  await sql`
    update mail_state set ${column} = ${to}::timestamptz
    where user_id = ${limit.userId} and ${column} = ${from}::timestamptz`
}

function findColumn({ isUrgent }: Limit) {
  return isUrgent ? fragment`urgent_at` : fragment`ordinary_at`
}
