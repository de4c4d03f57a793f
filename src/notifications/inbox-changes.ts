import type { Query } from '../db/sql.ts'
import type { NotificationJson } from './schema.ts'

/**
 * What is notified of at commit, on the channel `notification`: for each new row `<user>:<id>`, and `<user>` where only the
 * number of unread ones has changed, with commas between. Rows are named one by one: a reader who went by "everything above
 * the last id" would lose those that commit late.
 */
export const INBOX_CHANNEL = 'notification'

/** By user, the ids of what is new; none where only the count has changed. */
export type PendingChanges = Map<number, Set<number>>

/** Reads a payload, and adds what it says of users that matter. */
export function collectChanges(named: PendingChanges, payload: string, matters: (userId: number) => boolean): void {
  for (const item of payload.split(',')) {
    const [userId, id] = item.split(':').map(Number) as [number, number?]
    if (!matters(userId)) continue
    if (!named.has(userId)) named.set(userId, new Set())
    if (id !== undefined) named.get(userId)!.add(id)
  }
}

/** How things stand with a user; `latestId` is null for one who has no notification at all. */
export type InboxChange = { userId: number; unreadCount: number; latestId: number | null; fresh: NotificationJson[] }

/** How things stand with each of the users, and those of the named notifications that are still there; of one instant. */
export async function readInboxChanges(sql: Query, userIds: number[], named: PendingChanges): Promise<InboxChange[]> {
  const pairs = [...named].flatMap(([userId, ids]) => Array.from(ids, id => ({ userId, id })))
  const rows = await sql<{ user_id: number; unread_count: number; latest_id: number | null; json: string | null }>`
    with fresh as (
      select user_id, id, (select row_to_json(wire)::text from (
        select id, type, title, message, data, read_at is not null as is_read,
          date_trunc('second', read_at) as read_at, date_trunc('second', created_at) as created_at) as wire) as json
      from unnest(${pairs.map(pair => pair.userId)}::bigint[], ${pairs.map(pair => pair.id)}::bigint[])
        as named (user_id, id) join notification using (user_id, id)
    )
    select user_id, unread_count, latest_id, json
    from unnest(${userIds}::bigint[]) as asked (user_id)
      cross join lateral (
        select count(*) as unread_count from notification where user_id = asked.user_id and read_at is null) as unread
      cross join lateral (select max(id) as latest_id from notification where user_id = asked.user_id) as latest
      left join fresh using (user_id)
    order by id`
  return Array.from(
    Map.groupBy(rows, row => row.user_id),
    ([userId, of]) => ({
      userId,
      unreadCount: of[0]!.unread_count,
      latestId: of[0]!.latest_id,
      fresh: of.flatMap(({ json }) => json ?? []),
    }),
  )
}
