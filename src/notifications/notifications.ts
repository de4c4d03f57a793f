import type { Query, Sql } from '../db/sql.ts'
import { fragment, NOTHING } from '../db/statement.ts'
import { UNKNOWN_ACTOR } from './catalogue.ts'
import { INBOX_CHANNEL } from './inbox-changes.ts'
import { NOTIFICATION_COLUMNS, type NotificationJson } from './schema.ts'

/** The requested part of a list: a page, or the notifications before one that the client has. */
export type Slice = { page: number; perPage: number; beforeId?: number | undefined }

/** `json` is a JSON array of notifications. */
export type Page = { json: string; total: number; unreadCount: number }

/**
 * Returns a slice of a user's notifications, newest first, and the counts of the same snapshot, in one statement.
 * Subqueries count instead of a window over the rows, so the counts are also right past the end.
 */
export async function list(sql: Query, userId: number, { page, perPage, beforeId }: Slice): Promise<Page> {
  // A larger offset would overflow PostgreSQL's bigint. No user has as many notifications.
  const offset = Math.min((page - 1) * perPage, Number.MAX_SAFE_INTEGER)
  const newest = beforeId === undefined ? Number.MAX_SAFE_INTEGER : beforeId - 1
  const [row] = await sql<{ total: number; unread_count: number; page: string | null }>`
    with slice as (
      select ${NOTIFICATION_COLUMNS}
      from notification
      where user_id = ${userId} and id <= ${newest}
      order by id desc
      limit ${perPage} offset ${offset}
    )
    select
      (select count(*) from notification where user_id = ${userId}) as total,
      (select count(*) from notification where user_id = ${userId} and read_at is null) as unread_count,
      (select string_agg(row_to_json(slice)::text, ',' order by id desc) from slice) as page`
  return { json: `[${row!.page ?? ''}]`, total: row!.total, unreadCount: row!.unread_count }
}

export async function countUnread(sql: Query, userId: number): Promise<number> {
  const [row] = await sql<{ count: number }>`
    select count(*) from notification where user_id = ${userId} and read_at is null`
  return row!.count
}

// Every statement that changes an unread count or adds a notification notifies the INBOX_CHANNEL.

/**
 * Marks a notification as read. One that is read already keeps its `read_at`, and nothing is written. If a concurrent
 * request marked it first, our snapshot contains neither version of the row, so we retry once.
 * @returns the notification, or undefined if the user does not have it
 */
export async function markRead(
  sql: Query,
  userId: number,
  id: number,
  now: Date,
): Promise<NotificationJson | undefined> {
  const mark = async () => {
    const [marked] = await sql<{ json: NotificationJson }>`
      with changed as (
        update notification set read_at = ${now}, updated_at = ${now}
        where user_id = ${userId} and id = ${id} and read_at is null
        returning id, type, title, message, data, read_at, created_at, pg_notify(${INBOX_CHANNEL}, ${userId}::text)
      ), marked as (
        select id, type, title, message, data, read_at, created_at from changed
        union all
        select id, type, title, message, data, read_at, created_at
        from notification where user_id = ${userId} and id = ${id} and read_at is not null
      )
      select row_to_json(wire)::text as json from (select ${NOTIFICATION_COLUMNS} from marked) as wire`
    return marked?.json
  }
  return (await mark()) ?? mark()
}

/**
 * Marks a user's unread notifications as read, all of them or those in `ids`. It locks the rows in the order of their
 * ids, so two such calls cannot deadlock.
 * @returns how many it marked
 */
export async function markAllRead(sql: Sql, userId: number, ids: number[] | undefined, now: Date): Promise<number> {
  // With `ids` this is another statement, because a plan for both would read every unread row to find a few.
  const amongIds = ids ? fragment`and id = any(${ids}::bigint[])` : NOTHING
  const [row] = await sql<{ count: number }>`
    with mine as (
      select id from notification
      where user_id = ${userId} and read_at is null ${amongIds}
      order by id
      for update
    ), changed as (
      update notification set read_at = ${now}, updated_at = ${now}
      from mine
      where user_id = ${userId} and notification.id = mine.id
      returning mine.id
    )
    select count(*), case when count(*) > 0 then pg_notify(${INBOX_CHANNEL}, ${userId}::text) end from changed`
  return row!.count
}

/** Deletes a notification. @returns whether the user had it */
export async function remove(sql: Sql, userId: number, id: number): Promise<boolean> {
  const removed = await sql`
    delete from notification where user_id = ${userId} and id = ${id}
    returning id, case when read_at is null then pg_notify(${INBOX_CHANNEL}, ${userId}::text) end`
  return removed.length > 0
}

/**
 * Returns whether another user has the notification. This is the only query that is not limited to one user's rows. A
 * row of the caller, perhaps inserted just now, does not count.
 */
export async function belongsToOther(sql: Query, userId: number, id: number): Promise<boolean> {
  const [row] = await sql<{ found: boolean }>`
    select exists (select from notification where id = ${id} and id > 0 and user_id <> ${userId}) as found`
  return row!.found
}

/**
 * "Deleting a user turns their name into 'Un joueur' in others' notifications". The name is the start of these
 * messages. Call it under the user's lock, so no new notification can name them, and before the account is deleted
 * together with its own notifications. It locks those too, all in the order of their ids. So two users who are in each
 * other's notifications can be deleted at the same time.
 */
export async function anonymizeActor(sql: Sql, userId: number): Promise<void> {
  await sql`
    select count(*) from (
      select id from notification
      where user_id = ${userId} or (actor_id = ${userId} and actor_name_length > 0)
      order by id
      for update
    ) as locked`
  await sql`
    update notification
    set message = case locale when 'en' then ${UNKNOWN_ACTOR.en} else ${UNKNOWN_ACTOR.fr} end
        || substr(message, actor_name_length + 1),
      actor_name_length = 0
    where actor_id = ${userId} and actor_name_length > 0`
}

/**
 * Deletes notifications that are older than the given instants: `read` for read ones, `any` for all. Null means never.
 * It walks the table in the order of ids, which is nearly the order of creation, with one statement for each slice.
 * @returns how many it deleted
 */
export async function prune(sql: Sql, { read, any }: { read: Date | null; any: Date | null }, slice: number) {
  const newest = Math.max(read?.getTime() ?? 0, any?.getTime() ?? 0)
  let deleted = 0
  for (let after = 0; ; ) {
    const [seen] = await sql<{ last: number | null; oldest: Date | null; deleted: number }>`
      with slice as (
        select user_id, id, read_at, created_at from notification
        where id > ${after} and id > 0
        order by id
        limit ${slice}
      ), deleted as (
        delete from notification using slice
        where notification.user_id = slice.user_id and notification.id = slice.id
          and (slice.created_at < ${any} or (slice.read_at is not null and slice.created_at < ${read}))
        returning notification.id
      )
      select max(id) as last, min(created_at) as oldest, (select count(*) from deleted) as deleted from slice`
    deleted += seen!.deleted
    // Nothing in this slice was old enough, so the following slices are too young.
    if (seen!.last === null || seen!.oldest!.getTime() >= newest) return deleted
    after = seen!.last
  }
}

/** Returns a user's notifications, and those of others that name the user, for `users export`. */
export async function exportUserData(sql: Sql, userId: number) {
  const received = await sql`
    select id, type, title, message, data, read_at, created_at
    from notification where user_id = ${userId} order by id`
  const naming = await sql`
    select type, message, created_at from notification where actor_id = ${userId} and actor_name_length > 0 order by id`
  return { received, naming }
}
