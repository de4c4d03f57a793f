import type { Query, Sql } from '../db/sql.ts'
import type { Language } from '../language.ts'
import { UNKNOWN_ACTOR } from './catalogue.ts'
import type { NotificationJson } from './schema.ts'

/** Which part of a list is asked for: a page, or what came before a notification already seen. */
export type Slice = { page: number; perPage: number; beforeId?: number | undefined }

/** `json` is the notifications' array. */
export type Page = { json: string; total: number; unreadCount: number }

/**
 * A slice of a user's notifications, newest first, with the counts of the same instant: one statement. The counts are
 * taken beside the rows, rather than over them, so that they are right past the end too.
 */
export async function list(sql: Query, userId: number, { page, perPage, beforeId }: Slice): Promise<Page> {
  // The database's bigint ends where no user's notifications ever will.
  const offset = Math.min((page - 1) * perPage, Number.MAX_SAFE_INTEGER)
  const newest = beforeId === undefined ? Number.MAX_SAFE_INTEGER : beforeId - 1
  const [row] = await sql<{ total: number; unread_count: number; page: string | null }>`
    with slice as (
      select id, type, title, message, data, read_at is not null as is_read,
        date_trunc('second', read_at) as read_at, date_trunc('second', created_at) as created_at
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

/** How many of a user's notifications are unread. */
export async function countUnread(sql: Query, userId: number): Promise<number> {
  const [row] = await sql<{ count: number }>`
    select count(*) from notification where user_id = ${userId} and read_at is null`
  return row!.count
}

// Whatever changes the number of unread ones, or adds any, says so at its commit: see news.ts.

/**
 * Marks one as read, keeping the first time: one that is read already is given as it is, and nothing is written. Who waited
 * for another to read it first finds neither an unread one nor, as things stood when it began, a read one: it asks again.
 * @returns undefined when the user has no such notification
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
        returning id, type, title, message, data, read_at, created_at, pg_notify('notification', ${userId}::text)
      ), marked as (
        select id, type, title, message, data, read_at, created_at from changed
        union all
        select id, type, title, message, data, read_at, created_at
        from notification where user_id = ${userId} and id = ${id} and read_at is not null
      )
      select row_to_json(wire)::text as json from (
        select id, type, title, message, data, true as is_read,
          date_trunc('second', read_at) as read_at, date_trunc('second', created_at) as created_at
        from marked) as wire`
    return marked?.json
  }
  return (await mark()) ?? mark()
}

/**
 * Marks the unread ones as read, all of them or those of `ids`. Rows are locked in the order of ids, whatever the plan, so
 * that no two of these wait for each other.
 * @returns how many it changed
 */
export async function markAllRead(sql: Sql, userId: number, ids: number[] | undefined, now: Date): Promise<number> {
  // Two statements, since a plan made for both would look at every unread one to find the few of `ids`.
  const [row] = ids
    ? await sql<{ count: number }>`
        with mine as (
          select id from notification
          where user_id = ${userId} and read_at is null and id = any(${ids}::bigint[])
          order by id
          for update
        ), changed as (
          update notification set read_at = ${now}, updated_at = ${now}
          from mine
          where user_id = ${userId} and notification.id = mine.id
          returning mine.id
        )
        select count(*), case when count(*) > 0 then pg_notify('notification', ${userId}::text) end from changed`
    : await sql<{ count: number }>`
        with mine as (
          select id from notification where user_id = ${userId} and read_at is null order by id for update
        ), changed as (
          update notification set read_at = ${now}, updated_at = ${now}
          from mine
          where user_id = ${userId} and notification.id = mine.id
          returning mine.id
        )
        select count(*), case when count(*) > 0 then pg_notify('notification', ${userId}::text) end from changed`
  return row!.count
}

/** Deletes one. @returns whether the user had it */
export async function remove(sql: Sql, userId: number, id: number): Promise<boolean> {
  const removed = await sql`
    delete from notification where user_id = ${userId} and id = ${id}
    returning id, case when read_at is null then pg_notify('notification', ${userId}::text) end`
  return removed.length > 0
}

/**
 * Whether somebody else has the notification of this id: the one look-up that can't say whose. One's own, which may have
 * arrived just now, is none of another's.
 */
export async function belongsToOther(sql: Query, userId: number, id: number): Promise<boolean> {
  const [row] = await sql<{ found: boolean }>`
    select exists (select from notification where id = ${id} and id > 0 and user_id <> ${userId}) as found`
  return row!.found
}

/** One to be stored. `fact` is what brought it about: a user gets one of each. */
export type NewNotification = {
  userId: number
  dedupKey: string
  type: string
  title: string
  message: string
  data: Record<string, unknown>
  locale: Language
  actorId: number | null
  /** How many characters of the message's start are the actor's name, as PostgreSQL counts them; 0 when none are. */
  actorNameLength: number
}

/**
 * Stores notifications in one insert; their ids rise in the order given. Whoever has that fact already gets it no second
 * time, and users that don't exist are skipped.
 * @returns how many were stored
 */
export async function store(sql: Sql, notifications: NewNotification[], now: Date): Promise<number> {
  if (notifications.length === 0) return 0
  const column = <K extends keyof NewNotification>(name: K) => notifications.map(notification => notification[name])
  const [row] = await sql<{ count: number }>`
    with stored as (
      insert into notification (user_id, type, title, message, data, fact, actor_id, locale, actor_name_length,
        created_at, updated_at)
      select user_id, type, title, message, data, fact, actor_id, new.locale, actor_name_length, ${now}, ${now}
      from unnest(${column('userId')}::bigint[], ${column('type')}::text[], ${column('title')}::text[],
          ${column('message')}::text[], ${column('data').map(data => JSON.stringify(data))}::json[],
          ${column('dedupKey')}::text[], ${column('actorId')}::bigint[], ${column('locale')}::text[],
          ${column('actorNameLength')}::smallint[]) with ordinality
        as new (user_id, type, title, message, data, fact, actor_id, locale, actor_name_length, position)
        join app_user on app_user.id = new.user_id
      order by position
      on conflict on constraint notification_fact_key do nothing
      returning user_id, id
    ), told as (
      -- In parts that surely fit into the 8000 bytes of a payload; a transaction takes the lock of NOTIFY but once.
      select count(*) as count, pg_notify('notification', string_agg(user_id || ':' || id, ',' order by id))
      from (select user_id, id, (row_number() over () - 1) / 200 as part from stored) as numbered
      group by part
    )
    select coalesce(sum(count), 0)::bigint as count from told`
  return row!.count
}

/**
 * "Deleting a user turns their name into 'Un joueur' in others' notifications": the name is how their messages start.
 * To be called with the user locked, so that nothing new speaks of them, and before the account goes and takes their own
 * notifications along. Those are locked here too, all in the order of ids: two who speak of each other may go at once.
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
    set message = case locale when 'en' then ${UNKNOWN_ACTOR.en} else ${UNKNOWN_ACTOR.fr} end || substr(message, actor_name_length + 1),
      actor_name_length = 0
    where actor_id = ${userId} and actor_name_length > 0`
}

/**
 * Deletes what was created before the given instants: `read` for the read ones, `any` for all, null for never. It walks the
 * table in the order of ids, which is nearly that of creation, a slice a statement.
 * @returns how many it deleted
 */
export async function prune(sql: Sql, { read, any }: { read: Date | null; any: Date | null }, slice: number) {
  const newest = Math.max(read?.getTime() ?? 0, any?.getTime() ?? 0)
  let deleted = 0
  for (let after = 0; ; ) {
    const [seen] = await sql<{ last: number | null; oldest: Date | null; deleted: number }>`
      with slice as (
        select user_id, id, read_at, created_at from notification where id > ${after} and id > 0 order by id limit ${slice}
      ), gone as (
        delete from notification using slice
        where notification.user_id = slice.user_id and notification.id = slice.id
          and (slice.created_at < ${any} or (slice.read_at is not null and slice.created_at < ${read}))
        returning notification.id
      )
      select max(id) as last, min(created_at) as oldest, (select count(*) from gone) as deleted from slice`
    deleted += seen!.deleted
    // A slice with nothing old enough is where the young ones begin.
    if (seen!.last === null || seen!.oldest!.getTime() >= newest) return deleted
    after = seen!.last
  }
}

/** What is held on a user here (`users export`): what they were told, and what others were told of them. */
export async function exportUserData(sql: Sql, userId: number) {
  const received = await sql`
    select id, type, title, message, data, read_at, created_at
    from notification where user_id = ${userId} order by id`
  const naming = await sql`
    select type, message, created_at from notification where actor_id = ${userId} and actor_name_length > 0 order by id`
  return { received, naming }
}
