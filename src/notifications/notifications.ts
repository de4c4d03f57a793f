import type { Query, Sql } from '../db/sql.ts'
import { fragment, NOTHING } from '../db/statement.ts'
import { UNKNOWN_ACTOR } from './catalogue.ts'
import { NOTIFICATION_COLUMNS, type NotificationJson } from './schema.ts'

/** The requested part of a list: a page, or the notifications that are older than `beforeId`. */
export type Slice = { page: number; perPage: number; beforeId?: number | undefined }

/**
 * A slice of the list, the number of all notifications and the number of unread notifications. `json` is a JSON array
 * of notifications.
 */
export type Page = { json: string; total: number; unreadCount: number }

/**
 * Returns a slice of a user's notifications, newest first, the number of all notifications and the number of unread
 * notifications. One statement reads everything from one snapshot. Each count has its own subquery, so the counts are
 * also correct if the requested page is beyond the last page.
 */
export async function list(sql: Query, userId: number, { page, perPage, beforeId }: Slice): Promise<Page> {
  // A larger offset could overflow PostgreSQL's bigint. No user has so many notifications, so the limit changes no
  // result.
  const offset = Math.min((page - 1) * perPage, Number.MAX_SAFE_INTEGER)
  const maxId = beforeId === undefined ? Number.MAX_SAFE_INTEGER : beforeId - 1
  const [row] = await sql<{ total: number; unread_count: number; page: string | null }>`
    with slice as (
      select ${NOTIFICATION_COLUMNS}
      from notification
      where user_id = ${userId} and id <= ${maxId}
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

/**
 * Marks a notification as read. If the notification is already read, nothing is written and `read_at` stays unchanged.
 * If a concurrent request marks the notification while the statement runs, the statement may return no row. Its
 * `update` waits for the other request, and then skips the notification as already read. Its `select` reads the
 * snapshot from the start of the statement, in which the notification is unread. So the function runs the statement
 * again.
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
        returning id, type, title, message, data, read_at, created_at
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
 * Marks a user's unread notifications as read: all of them, or only those in `ids`. Locks the rows in the order of
 * their ids, so two calls cannot deadlock.
 * @returns the number of notifications that were marked
 */
export async function markAllRead(sql: Sql, userId: number, ids: number[] | undefined, now: Date): Promise<number> {
  // A call with `ids` runs a different statement from a call without `ids`. If both calls ran the same statement, the
  // query plan would read all unread rows even for a few ids.
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
    select count(*) from changed`
  return row!.count
}

/** Deletes a notification. @returns whether the user had this notification */
export async function remove(sql: Sql, userId: number, id: number): Promise<boolean> {
  const removed = await sql`
    delete from notification where user_id = ${userId} and id = ${id} returning id`
  return removed.length > 0
}

/**
 * Returns whether a notification belongs to another user. A notification of `userId` does not count, although the
 * caller has not found it: the notification may have been inserted after the search.
 */
export async function belongsToOther(sql: Query, userId: number, id: number): Promise<boolean> {
  const [row] = await sql<{ found: boolean }>`
    select exists (select 1 from notification where id = ${id} and id > 0 and user_id <> ${userId}) as found`
  return row!.found
}

/**
 * Deletes the notifications to a user, and replaces the user's name with "Un joueur" or "A player" in the notifications
 * to other users. The messages of these notifications begin with the name.
 *
 * Call this while the transaction has the lock on the user's account, so no new notification can contain the name.
 * The function goes through the inboxes in the order of their users, and locks the rows of an inbox in the order of
 * their ids. So two users can be deleted at the same time without a deadlock, even if each user has notifications about
 * the other. Each statement names one user, because Citus cannot lock rows of several shards.
 */
export async function eraseUser(sql: Sql, userId: number): Promise<void> {
  const named = await sql<{ user_id: number }>`
    select distinct user_id from notification where actor_id = ${userId} and actor_name_length > 0`
  const owners = new Set([userId, ...named.map(row => row.user_id)])
  for (const owner of [...owners].sort((one, other) => one - other)) {
    if (owner === userId) await removeAll(sql, userId)
    else await anonymizeActor(sql, owner, userId)
  }
}

async function removeAll(sql: Sql, userId: number): Promise<void> {
  await sql`
    with mine as (select id from notification where user_id = ${userId} order by id for update)
    delete from notification using mine where user_id = ${userId} and notification.id = mine.id`
}

async function anonymizeActor(sql: Sql, userId: number, actorId: number): Promise<void> {
  await sql`
    with named as (
      select id from notification
      where user_id = ${userId} and actor_id = ${actorId} and actor_name_length > 0
      order by id
      for update
    )
    update notification
    set message = case locale when 'en' then ${UNKNOWN_ACTOR.en} else ${UNKNOWN_ACTOR.fr} end
        || substr(message, actor_name_length + 1),
      actor_name_length = 0
    from named
    where user_id = ${userId} and notification.id = named.id`
}

/**
 * Deletes read notifications that were created before `read`, and all notifications that were created before `any`. The
 * function ignores a limit (`read` or `any`) that is null. The function goes through the table `notification` in the
 * order of the ids, which is nearly the order of creation. Each statement handles at most `sliceSize` rows.
 * @returns the number of deleted notifications
 */
export async function prune(sql: Sql, { read, any }: { read: Date | null; any: Date | null }, sliceSize: number) {
  const latestLimit = Math.max(read?.getTime() ?? 0, any?.getTime() ?? 0)
  let deleted = 0
  for (let after = 0; ; ) {
    const [seen] = await sql<{ last: number | null; oldest: Date | null; deleted: number }>`
      with slice as (
        select user_id, id, read_at, created_at from notification
        where id > ${after} and id > 0
        order by id
        limit ${sliceSize}
      ), deleted as (
        delete from notification using slice
        where notification.user_id = slice.user_id and notification.id = slice.id
          and (slice.created_at < ${any} or (slice.read_at is not null and slice.created_at < ${read}))
        returning notification.id
      )
      select max(id) as last, min(created_at) as oldest, (select count(*) from deleted) as deleted from slice`
    deleted += seen!.deleted
    // The loop ends after the last slice, or if even the oldest notification of a slice is too new to be deleted. The
    // notifications in later slices are newer.
    if (seen!.last === null || seen!.oldest!.getTime() >= latestLimit) return deleted
    after = seen!.last
  }
}

/**
 * Returns a user's notifications, and the notifications of other users that contain the user's name, for `users
 * export`.
 */
export async function exportUserData(sql: Sql, userId: number) {
  const received = await sql`
    select id, type, title, message, data, read_at, created_at
    from notification where user_id = ${userId} order by id`
  const naming = await sql`
    select type, message, created_at from notification where actor_id = ${userId} and actor_name_length > 0 order by id`
  return { received, naming }
}
