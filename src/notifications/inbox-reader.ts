import type { FastifyRequest } from 'fastify'
import { type EventStream, formatEvent } from '../http/event-stream.ts'
import type { InboxChange, InboxState } from './inbox-changes.ts'
import { InboxCursor } from './inbox-cursor.ts'

/** An open stream. `isSynced`: the stream has sent its first `sync`. */
export type Stream = { caller: FastifyRequest['caller']; wire: EventStream; isSynced: boolean }

/** The open streams of one user in this process, and what they have sent. */
export class InboxReader {
  readonly userId: number
  readonly streams = new Set<Stream>()
  /** Undefined before the first `sync`. */
  cursor: InboxCursor | undefined

  constructor(userId: number) {
    this.userId = userId
  }

  /** Sends a `sync` on those streams that are in `syncing`. @param nowMs the time before the state was read */
  sync(state: InboxState, syncing: ReadonlySet<Stream>, nowMs: number): void {
    const { unreadCount, latestId } = state
    const sync = formatEvent('sync', JSON.stringify({ unread_count: unreadCount, latest_id: latestId }))
    for (const stream of this.streams) {
      if (!syncing.has(stream)) continue
      stream.wire.write(sync)
      stream.isSynced = true
    }
    this.cursor ??= new InboxCursor(this.userId, state, nowMs)
    // All streams of a user have the same count, although only some of them get a `sync`.
    this.send({ unreadCount, fresh: [] }, nowMs)
  }

  /** Sends a change on all streams that have sent a `sync`. @param nowMs the time before the change was read */
  send({ unreadCount, fresh }: InboxChange, nowMs: number): void {
    const cursor = this.cursor!
    if (fresh.length === 0 && unreadCount === cursor.unreadCount) return
    const notifications = fresh.map(({ json }) => formatEvent('notification', json)).join('')
    const unread = formatEvent('unread_count', JSON.stringify({ unread_count: unreadCount }))
    for (const stream of this.streams) if (stream.isSynced) stream.wire.write(notifications + unread)
    cursor.markSent(
      fresh.map(({ id }) => id),
      nowMs,
    )
    cursor.unreadCount = unreadCount
    cursor.lastEventAt = nowMs
  }
}
