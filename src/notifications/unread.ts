import type { Query } from '../db/sql.ts'
import type { NotificationType } from '../notification-types.ts'

/** An unread notification, as a push or a mail about it needs it. */
export type UnreadNotification = {
  id: number
  userId: number
  type: NotificationType
  title: string
  message: string
  /** The number of code points of the actor's name, with which the message begins. 0 if it begins with no name. */
  actorNameLength: number
  data: Record<string, unknown>
  createdAt: Date
}

type Row = Omit<UnreadNotification, 'userId' | 'createdAt' | 'data' | 'actorNameLength'> & {
  user_id: number
  actor_name_length: number
  data: Record<string, unknown> | null
  created_at: Date
}

/**
 * Returns those of the notifications that exist and are unread, in ascending order of their ids. The statement names no
 * other table, because Citus may distribute the notifications.
 */
export async function readUnread(
  sql: Query,
  wanted: readonly { userId: number; id: number }[],
): Promise<UnreadNotification[]> {
  const rows = await sql<Row>`
    select id, user_id, type, title, message, actor_name_length, data, created_at from notification
    where user_id = any(${[...new Set(wanted.map(({ userId }) => userId))]}::bigint[])
      and id = any(${wanted.map(({ id }) => id)}::bigint[]) and id > 0 and read_at is null
    order by id`
  return rows.map(({ user_id, created_at, actor_name_length, data, ...row }) => ({
    ...row,
    userId: user_id,
    actorNameLength: actor_name_length,
    data: data ?? {},
    createdAt: created_at,
  }))
}
