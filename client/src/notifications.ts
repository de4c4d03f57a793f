import type { Message, Notification } from './api.ts'
import type { NotificationPage, PageQuery } from './endpoints.ts'
import type { Session } from './session.ts'
import { SharedWatch } from './shared-watch.ts'
import type { Watcher } from './watch-types.ts'

/** The service accepts at most 100 ids in one read-all request. */
const MAX_IDS_PER_REQUEST = 100

/** The notifications of the signed-in user. If a request fails, the method throws CourtsideError. */
export class Notifications {
  readonly #session: Session
  readonly #watch: SharedWatch

  /** @param canStream whether `fetch` returns an answer before its body is complete */
  constructor(session: Session, canStream: boolean) {
    this.#session = session
    this.#watch = new SharedWatch({
      canStream,
      signedIn: async () => (await session.token()) !== null,
      onSignedOut: listener => session.onSignedOut(listener),
      openStream: signal => session.open('/api/v1/notifications/stream', signal),
      fetchNewest: signal => session.call('GET /api/v1/notifications', { query: {} }, { signal }),
      sharedName: () => session.sharedName(),
    })
  }

  /** Returns one page of notifications, newest first. A query may contain `before_id` or `page`, but not both. */
  list(query: PageQuery = {}): Promise<NotificationPage> {
    return this.#session.call('GET /api/v1/notifications', { query })
  }

  /**
   * Yields pages of notifications, newest first. If new notifications arrive between two pages, the pages contain
   * neither duplicates nor gaps.
   */
  async *pages({ per_page = 20 }: { per_page?: number } = {}): AsyncGenerator<NotificationPage, void, undefined> {
    let page = await this.list({ per_page })
    yield page
    while (page.data.length >= page.meta.per_page) {
      page = await this.list({ per_page, before_id: page.data.at(-1)!.id })
      if (page.data.length === 0) return
      yield page
    }
  }

  /** Yields all notifications, newest first. Each page is fetched when the caller reaches it. */
  async *all({ per_page = 100 }: { per_page?: number } = {}): AsyncGenerator<Notification, void, undefined> {
    for await (const { data } of this.pages({ per_page })) yield* data
  }

  async unreadCount(): Promise<number> {
    return (await this.#session.call('GET /api/v1/notifications/unread-count', {})).unread_count
  }

  /** Marks a notification as read. @returns the notification after the change */
  async read(id: number): Promise<Notification> {
    return (await this.#session.call('POST /api/v1/notifications/{id}/read', { path: { id } })).data
  }

  /**
   * Marks the notifications with the given ids as read. Without `ids`, marks all notifications as read.
   * @returns the message of the service, and the number of notifications that changed
   */
  async readAll(ids?: number[]): Promise<{ message: string; count: number }> {
    const mark = (body: { ids?: number[] }) => this.#session.call('POST /api/v1/notifications/read-all', { body })
    if (!ids) return mark({})
    const result = await mark({ ids: ids.slice(0, MAX_IDS_PER_REQUEST) })
    for (let start = MAX_IDS_PER_REQUEST; start < ids.length; start += MAX_IDS_PER_REQUEST) {
      result.count += (await mark({ ids: ids.slice(start, start + MAX_IDS_PER_REQUEST) })).count
    }
    return result
  }

  delete(id: number): Promise<Message> {
    return this.#session.call('DELETE /api/v1/notifications/{id}', { path: { id } })
  }

  /**
   * Starts a watch, which reports each change of the inbox to the watcher. The watch ends when the caller stops it or
   * when the session ends. The watch opens a stream of server-sent events. If no stream is possible, the watch polls
   * the list. All watches of a client share one stream. Tabs that share a session also share one stream, if the browser
   * has Web Locks. This method never throws. The listener `onState` receives the state of the watch.
   * @returns a function that stops the watch
   */
  watch(watcher: Watcher): () => void {
    return this.#watch.watch(watcher)
  }
}
