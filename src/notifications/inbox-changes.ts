import type { Query } from '../db/sql.ts'
import { NOTIFICATION_COLUMNS, type NotificationJson } from './schema.ts'

/**
 * The state of an inbox. `latestId` is null if the inbox is empty. `floor` is the highest id of the notifications that
 * are older than a given time, or 0. `sentIds` are the ids above the floor.
 */
export type InboxState = { unreadCount: number; latestId: number | null; floor: number; sentIds: number[] }

/** Returns the state of a user's inbox, from one snapshot. @param olderThan see `InboxState` */
export async function readInbox(sql: Query, userId: number, olderThan: Date): Promise<InboxState> {
  const [row] = await sql<{ unread_count: number; latest_id: number | null; floor: number; sent_ids: number[] | null }>`
    with older as (
      select coalesce(max(id), 0) as floor from notification where user_id = ${userId} and created_at < ${olderThan}
    )
    select
      (select count(*) from notification where user_id = ${userId} and read_at is null) as unread_count,
      (select max(id) from notification where user_id = ${userId}) as latest_id,
      floor,
      (select array_agg(id) from notification where user_id = ${userId} and id > floor) as sent_ids
    from older`
  const { unread_count, latest_id, floor, sent_ids } = row!
  return { unreadCount: unread_count, latestId: latest_id, floor, sentIds: sent_ids ?? [] }
}

/** The unread count of a user, and the notifications that the user's streams have not sent yet, in the order of ids. */
export type InboxChange = { unreadCount: number; fresh: { id: number; json: NotificationJson }[] }

type Row = { user_id: number; id: number | null; json: string | null; unread_count: number | null }

/**
 * Returns the change of each inbox, by user. One statement reads all inboxes from one snapshot.
 *
 * The statement also runs on a table that is distributed by `user_id`. Therefore it has no lateral join, and the JSON
 * comes from a row that begins with the user's id. The id is cut off afterwards.
 */
export async function readInboxChanges(
  sql: Query,
  cursors: readonly { userId: number; floor: number; sentIds: Iterable<number> }[],
): Promise<Map<number, InboxChange>> {
  const changes = new Map(cursors.map(({ userId }) => [userId, { unreadCount: 0, fresh: [] } as InboxChange]))
  if (changes.size === 0) return changes
  const userIds = [...changes.keys()]
  const floors = cursors.map(({ floor }) => floor)
  const sentIds = cursors.flatMap(cursor => [...cursor.sentIds])
  const rows = await sql<Row>`
    select user_id, id, row_to_json(wire)::text as json, null::bigint as unread_count
    from (
      select user_id, ${NOTIFICATION_COLUMNS}
      from unnest(${userIds}::bigint[], ${floors}::bigint[]) as reader (user_id, floor)
        join notification using (user_id)
      where id > floor and id not in (select sent_id from unnest(${sentIds}::bigint[]) as sent_id)
    ) as wire
    union all
    select user_id, null, null, count(*)
    from notification
    where user_id = any(${userIds}::bigint[]) and read_at is null
    group by user_id
    order by id`
  for (const { user_id, id, json, unread_count } of rows) {
    const change = changes.get(user_id)!
    if (unread_count !== null) change.unreadCount = unread_count
    else change.fresh.push({ id: id!, json: `{${json!.slice(`{"user_id":${user_id},`.length)}` })
  }
  return changes
}
