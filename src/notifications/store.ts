import { onChannel } from '../db/own-schema.ts'
import type { Sql } from '../db/sql.ts'
import type { Language } from '../language.ts'
import type { RenderedText } from './catalogue.ts'
import { INBOX_CHANNEL } from './inbox-changes.ts'

/** A notification to store. A user gets only one notification for each `dedupKey`. */
export type NewNotification = RenderedText & {
  userId: number
  dedupKey: string
  type: string
  data: Record<string, unknown>
  locale: Language
  actorId: number | null
}

/**
 * Stores notifications with one insert. The ids of the stored rows ascend in the order of `notifications`. Skips
 * notifications to users who do not exist. Skips a notification if the user already has a notification with the same
 * deduplication key.
 * @returns the number of stored notifications
 */
export async function store(sql: Sql, notifications: NewNotification[], now: Date): Promise<number> {
  if (notifications.length === 0) return 0
  const column = <K extends keyof NewNotification>(name: K) => notifications.map(notification => notification[name])
  // `on conflict` names the columns instead of the constraint, because a later migration will rename the constraint
  // (see migration 0007).
  const [row] = await sql<{ count: number }>`
    with stored as (
      insert into notification (user_id, type, title, message, data, dedup_key, actor_id, locale, actor_name_length,
        created_at, updated_at)
      select user_id, type, title, message, data, dedup_key, actor_id, new.locale, actor_name_length, ${now}, ${now}
      from unnest(${column('userId')}::bigint[], ${column('type')}::text[], ${column('title')}::text[],
          ${column('message')}::text[], ${column('data').map(data => JSON.stringify(data))}::json[],
          ${column('dedupKey')}::text[], ${column('actorId')}::bigint[], ${column('locale')}::text[],
          ${column('actorName').map(name => name?.length ?? 0)}::smallint[]) with ordinality
        as new (user_id, type, title, message, data, dedup_key, actor_id, locale, actor_name_length, position)
        join app_user on app_user.id = new.user_id
      order by position
      on conflict (user_id, dedup_key) do nothing
      returning user_id, id
    ), notified as (
      -- A NOTIFY payload has at most 200 ids, so it stays below PostgreSQL's limit of 8000 bytes.
      select count(*) as count, pg_notify(${onChannel(INBOX_CHANNEL)}, string_agg(user_id || ':' || id, ',' order by id))
      from (select user_id, id, (row_number() over () - 1) / 200 as part from stored) as numbered
      group by part
    )
    select coalesce(sum(count), 0)::bigint as count from notified`
  return row!.count
}
