import type { Query } from '../db/sql.ts'
import { NOTIFICATION_COLUMNS, type NotificationJson } from './schema.ts'

/**
 * The NOTIFY channel for inbox changes. PostgreSQL delivers a payload when the transaction that sent the payload
 * commits. A payload is a comma-separated list. An item is `<user>:<id>` for a new notification, or `<user>` if only
 * the unread count has changed.
 *
 * Transactions do not commit in the order of the notification ids. A process that read only the ids above the last
 * known id would miss a row that commits late. So a payload contains the id of each new notification.
 */
export const INBOX_CHANNEL = 'notification'

/** The ids of new notifications, by user id. A set is empty if only the unread count has changed. */
export type PendingChanges = Map<number, Set<number>>

/** Adds the changes in a payload to `pending`, for the users that `isRelevant` accepts. */
export function collectChanges(
  pending: PendingChanges,
  payload: string,
  isRelevant: (userId: number) => boolean,
): void {
  for (const item of payload.split(',')) {
    const [userId, id] = item.split(':').map(Number) as [number, number?]
    if (!isRelevant(userId)) continue
    const ids = pending.get(userId) ?? new Set()
    pending.set(userId, ids)
    if (id !== undefined) ids.add(id)
  }
}

/**
 * The unread count and the latest notification id of a user after a change, and the user's new notifications.
 * `latestId` is null if the inbox is empty.
 */
export type InboxChange = { userId: number; unreadCount: number; latestId: number | null; fresh: NotificationJson[] }

/**
 * Returns the unread count and the latest id of each user, and those pending notifications that still exist. All values
 * come from one snapshot.
 */
export async function readInboxChanges(sql: Query, userIds: number[], pending: PendingChanges): Promise<InboxChange[]> {
  const pairs = [...pending].flatMap(([userId, ids]) => Array.from(ids, id => ({ userId, id })))
  const rows = await sql<{ user_id: number; unread_count: number; latest_id: number | null; json: string | null }>`
    with fresh as (
      select user_id, id, (select row_to_json(wire)::text from (select ${NOTIFICATION_COLUMNS}) as wire) as json
      from unnest(${pairs.map(pair => pair.userId)}::bigint[], ${pairs.map(pair => pair.id)}::bigint[])
        as pending (user_id, id) join notification using (user_id, id)
    )
    select user_id, unread_count, latest_id, json
    from unnest(${userIds}::bigint[]) as reader (user_id)
      cross join lateral (
        select count(*) as unread_count from notification where user_id = reader.user_id and read_at is null) as unread
      cross join lateral (select max(id) as latest_id from notification where user_id = reader.user_id) as latest
      left join fresh using (user_id)
    order by id`
  return Array.from(
    Map.groupBy(rows, row => row.user_id),
    ([userId, rowsOfUser]) => ({
      userId,
      unreadCount: rowsOfUser[0]!.unread_count,
      latestId: rowsOfUser[0]!.latest_id,
      fresh: rowsOfUser.flatMap(({ json }) => json ?? []),
    }),
  )
}
