import type { Sql } from '../db/sql.ts'
import type { Language } from '../language.ts'
import type { RenderedText } from './catalogue.ts'

/** A notification to store. A user gets only one notification for each `dedupKey`. */
export type NewNotification = RenderedText & {
  userId: number
  dedupKey: string
  type: string
  data: Record<string, unknown>
  locale: Language
  actorId: number | null
}

export type StoredNotification = { userId: number; id: number; dedupKey: string }

/**
 * Stores notifications with one insert. The ids of the stored rows ascend in the order of `notifications`. Skips
 * notifications to users who do not exist. Skips a notification if the user already has a notification with the same
 * deduplication key.
 * @returns the stored notifications
 */
export async function store(sql: Sql, notifications: NewNotification[], now: Date): Promise<StoredNotification[]> {
  if (notifications.length === 0) return []
  const column = <K extends keyof NewNotification>(name: K) => notifications.map(notification => notification[name])
  // `on conflict` names the columns instead of the constraint, because a later migration will rename the constraint
  // (see migration 0007).
  const rows = await sql<{ user_id: number; id: number; dedup_key: string }>`
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
    returning user_id, id, dedup_key`
  return rows.map(({ user_id, id, dedup_key }) => ({ userId: user_id, id, dedupKey: dedup_key }))
}
