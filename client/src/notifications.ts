import type { Message, Notification } from './api.ts'
import type { NotificationPage, PageQuery } from './endpoints.ts'
import type { Session } from './session.ts'
import type { Watcher } from './telling.ts'
import { watch } from './watch.ts'

/** The signed-in person's notifications. Every method throws CourtsideError. */
export class Notifications {
  readonly #session: Session

  constructor(session: Session) {
    this.#session = session
  }

  /** One page, newest first. `before_id` and `page` exclude each other. */
  list(query: PageQuery = {}): Promise<NotificationPage> {
    return this.#session.call('GET /api/v1/notifications', { query })
  }

  /** The pages, newest first; none repeats or leaves out what was there, although new ones arrive meanwhile. */
  async *pages({ per_page = 20 }: { per_page?: number } = {}): AsyncGenerator<NotificationPage, void, undefined> {
    let page = await this.list({ per_page })
    yield page
    while (page.data.length >= page.meta.per_page) {
      page = await this.list({ per_page, before_id: page.data.at(-1)!.id })
      if (page.data.length === 0) return
      yield page
    }
  }

  /** All of them, one by one, newest first; fetched by the page as they are taken. */
  async *all({ per_page = 100 }: { per_page?: number } = {}): AsyncGenerator<Notification, void, undefined> {
    for await (const { data } of this.pages({ per_page })) yield* data
  }

  async unreadCount(): Promise<number> {
    return (await this.#session.call('GET /api/v1/notifications/unread-count', {})).unread_count
  }

  /** Marks one as read. @returns it, as it is now */
  async read(id: number): Promise<Notification> {
    return (await this.#session.call('POST /api/v1/notifications/{id}/read', { path: { id } })).data
  }

  /** Marks all as read, or just those that were on the screen. @returns how many it changed */
  async readAll(ids?: number[]): Promise<{ message: string; count: number }> {
    const mark = (body: { ids?: number[] }) => this.#session.call('POST /api/v1/notifications/read-all', { body })
    if (!ids) return mark({})
    // "an optional body `{ids: [≤ 100 integers]}`"
    const result = await mark({ ids: ids.slice(0, 100) })
    for (let at = 100; at < ids.length; at += 100) result.count += (await mark({ ids: ids.slice(at, at + 100) })).count
    return result
  }

  delete(id: number): Promise<Message> {
    return this.#session.call('DELETE /api/v1/notifications/{id}', { path: { id } })
  }

  /**
   * Tells what happens to the notifications as it happens, over a stream where one can be had and by asking now and
   * then where not, until it is stopped or the session is over. It throws nothing: `onState` says how it fares.
   * @returns stop
   */
  watch(watcher: Watcher): () => void {
    const session = this.#session
    return watch(
      {
        // Its fetch has an answer only once it is complete, and a stream never is.
        streams: globalThis.navigator?.product !== 'ReactNative',
        signedIn: async () => (await session.token()) !== null,
        onSignedOut: listener => session.onSignedOut(listener),
        open: signal => session.open('/api/v1/notifications/stream', signal),
        newest: () => this.list(),
      },
      watcher,
    )
  }
}
