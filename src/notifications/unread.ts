import type { Query } from '../db/sql.ts'
import type { NotificationType } from '../notification-types.ts'

/** An unread notification, as a push or a mail about it needs it. */
export type UnreadNotification = {
  id: number
  userId: number
  type: NotificationType
  title: string
  message: string
  data: Record<string, unknown>
  createdAt: Date
}

type Row = Omit<UnreadNotification, 'userId' | 'createdAt' | 'data'> & {
  user_id: number
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
    select id, user_id, type, title, message, data, created_at from notification
    where user_id = any(${[...new Set(wanted.map(({ userId }) => userId))]}::bigint[])
      and id = any(${wanted.map(({ id }) => id)}::bigint[]) and id > 0 and read_at is null
    order by id`
  return rows.map(({ user_id, created_at, data, ...row }) => ({
    ...row,
    userId: user_id,
    data: data ?? {},
    createdAt: created_at,
  }))
}
