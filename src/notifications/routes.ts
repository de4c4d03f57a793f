import type { Context } from '../context.ts'
import { inboxHint } from '../db/hints.ts'
import type { Query } from '../db/sql.ts'
import { forbidden, invalid, notFound, same } from '../errors.ts'
import { EVENT_STREAM_HEADERS } from '../http/event-stream.ts'
import { sendJson } from '../http/format/json.ts'
import { Message } from '../http/message.ts'
import type { App } from '../http/route.ts'
import { Type } from '../http/type.ts'
import { preferredLanguage } from '../language.ts'
import * as notifications from './notifications.ts'
import { Notification, NotificationPath, PageQuery, PaginationMeta, ReadAllBody } from './schema.ts'
import type { Streams } from './stream.ts'

type NeededContext = Pick<Context, 'sql' | 'readSql' | 'hints' | 'now'>

export function notificationRoutes(app: App, ctx: NeededContext, streams: Streams): void {
  readingRoutes(app, ctx, streams)
  changingRoutes(app, ctx)
}

function readingRoutes(app: App, { readSql }: NeededContext, streams: Streams): void {
  app.route({
    method: 'GET',
    url: '/api/v1/notifications',
    schema: {
      operationId: 'listNotifications',
      tags: ['Notifications'],
      summary: 'List your notifications, newest first',
      querystring: PageQuery,
      response: { 200: Type.Object({ data: Type.Array(Notification), meta: PaginationMeta }) },
    },
    handler: async (request, reply) => {
      const { page = 1, per_page: perPage = 20, before_id: beforeId } = request.query
      if (beforeId !== undefined && request.query.page !== undefined) {
        throw invalid({
          before_id: [
            { fr: 'before_id et page ne vont pas ensemble.', en: 'before_id and page cannot be used together.' },
          ],
        })
      }
      const { json, total, unreadCount } = await notifications.list(readSql, request.caller.userId, {
        page,
        perPage,
        beforeId,
      })
      const last_page = Math.max(1, Math.ceil(total / perPage))
      const meta = { current_page: page, last_page, per_page: perPage, total, unread_count: unreadCount }
      return sendJson(reply, `{"data":${json},"meta":${JSON.stringify(meta)}}`)
    },
  })

  app.route({
    method: 'GET',
    url: '/api/v1/notifications/unread-count',
    schema: {
      operationId: 'countUnreadNotifications',
      tags: ['Notifications'],
      summary: 'Count your unread notifications',
      response: { 200: Type.Object({ unread_count: Type.Integer() }) },
    },
    handler: async request => ({ unread_count: await notifications.countUnread(readSql, request.caller.userId) }),
  })

  app.route({
    method: 'GET',
    url: '/api/v1/notifications/stream',
    schema: {
      operationId: 'streamNotifications',
      tags: ['Notifications'],
      summary: 'Receive new notifications as server-sent events',
      description: STREAM_DESCRIPTION,
      response: {
        200: { description: 'The events, until the token expires.', content: { 'text/event-stream': STREAM_EXAMPLE } },
      },
    },
    handler: async (request, reply) => {
      if (request.method === 'GET') return streams.open(reply, request.caller)
      reply.headers(EVENT_STREAM_HEADERS)
      return ''
    },
  })
}

function changingRoutes(app: App, { sql, readSql, hints, now }: NeededContext): void {
  /**
   * Changes the user's inbox, and sends the hint about it.
   * @param write returns undefined, false or 0 if it has changed nothing. In this case, no hint is sent
   */
  function change<T>(userId: number, write: () => Promise<T>): Promise<T> {
    return hints.sendAfter(async changed => {
      changed.add(inboxHint(userId))
      const result = await write()
      if (!result) changed.clear()
      return result
    })
  }

  app.route({
    method: 'POST',
    url: '/api/v1/notifications/:id/read',
    schema: {
      operationId: 'readNotification',
      tags: ['Notifications'],
      summary: 'Mark a notification as read',
      params: NotificationPath,
      response: { 200: Type.Object({ data: Notification }) },
    },
    handler: async (request, reply) => {
      const { userId } = request.caller
      const { id } = request.params
      const json = await change(userId, () => notifications.markRead(sql, userId, id, now()))
      if (!json) throw await ownershipError(readSql, userId, id)
      return sendJson(reply, `{"data":${json}}`)
    },
  })

  app.route({
    method: 'POST',
    url: '/api/v1/notifications/read-all',
    schema: {
      operationId: 'readAllNotifications',
      tags: ['Notifications'],
      summary: 'Mark all notifications as read, or only those with the given ids',
      body: ReadAllBody,
      response: { 200: Type.Object({ message: Type.String(), count: Type.Integer() }) },
    },
    handler: async request => {
      const { userId } = request.caller
      const count = await change(userId, () => notifications.markAllRead(sql, userId, request.body.ids, now()))
      return { message: MARKED_AS_READ[preferredLanguage(request.headers['accept-language'])], count }
    },
  })

  app.route({
    method: 'DELETE',
    url: '/api/v1/notifications/:id',
    schema: {
      operationId: 'deleteNotification',
      tags: ['Notifications'],
      summary: 'Delete a notification',
      params: NotificationPath,
      response: { 200: Message },
    },
    handler: async request => {
      const { userId } = request.caller
      const { id } = request.params
      const isRemoved = await change(userId, () => notifications.remove(sql, userId, id))
      if (!isRemoved) throw await ownershipError(readSql, userId, id)
      return { message: DELETED[preferredLanguage(request.headers['accept-language'])] }
    },
  })
}

/**
 * Returns the error for a notification that the caller does not have: a 403 if the notification belongs to another
 * user, otherwise a 404. The specification prescribes the message of the 403.
 */
async function ownershipError(sql: Query, userId: number, id: number) {
  return (await notifications.belongsToOther(sql, userId, id))
    ? forbidden(same('Cette notification ne vous appartient pas.'))
    : notFound()
}

const STREAM_DESCRIPTION = [
  'The first event is `sync` with `{unread_count, latest_id}`. Another `sync` follows after every gap in the stream. If',
  'a client does not have the notification with the id `latest_id` yet, the client fetches the list. When changes',
  'commit, the stream sends `notification` events (a Notification) and an `unread_count` event (`{unread_count}`). The',
  'stream may send a notification although an earlier `sync` already included it, and ids may arrive in any order. So',
  'identify a notification by its `id`. A comment every 20 s keeps the connection alive. The stream ends when the token',
  'expires or the session ends. A user has at most 5 open streams. If the user opens another stream, the oldest stream',
  'ends.',
].join(' ')
const STREAM_EXAMPLE = {
  schema: Type.String({ examples: ['event: sync\ndata: {"unread_count":2,"latest_id":41}\n\n'] }),
}

const MARKED_AS_READ = {
  fr: 'Les notifications ont été marquées comme lues.',
  en: 'The notifications were marked as read.',
}
const DELETED = { fr: 'La notification a été supprimée.', en: 'The notification was deleted.' }
