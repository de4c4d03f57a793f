import type { Notification } from '../api.ts'
import type { Courtside } from '../courtside.ts'
import { CourtsideError } from '../error.ts'

export type ListState = 'idle' | 'loading' | 'failed' | 'ready'

/**
 * The notifications that are shown, newest first, and what is done to them. Answers and live news may cross one another:
 * what has arrived or was deleted while a list was on its way stays so.
 */
export class InboxList {
  items: Notification[] = []
  unread = 0
  hasMore = false
  state: ListState = 'idle'
  readonly #client: Courtside
  readonly #changed: () => void
  readonly #deleted = new Set<number>()
  /** Those of which something is being done that makes them read or gone. */
  readonly #busy = new Set<number>()
  #arrived = new Map<number, Notification>()
  #asked = 0

  constructor(client: Courtside, changed: () => void) {
    this.#client = client
    this.#changed = changed
  }

  /** Fetches what is shown anew; the first page, when nothing is yet. It throws nothing: `state` tells. */
  async load(): Promise<void> {
    this.#asked += 1
    const asked = this.#asked
    this.#arrived = new Map()
    if (this.state !== 'ready') this.#become('loading')
    try {
      const per_page = Math.min(100, Math.max(20, this.items.length))
      const { data, meta } = await this.#client.notifications.list({ per_page })
      if (asked !== this.#asked) return
      this.items = this.#merge([...data, ...this.#arrived.values()])
      this.unread = meta.unread_count
      this.hasMore = meta.total > data.length
      this.#become('ready')
    } catch {
      // What is on the screen already is better than an apology.
      if (asked === this.#asked && this.state !== 'ready') this.#become('failed')
    }
  }

  /** Adds the page before the last one shown. @throws CourtsideError */
  async loadMore(): Promise<void> {
    const last = this.items.at(-1)
    if (!last) return this.load()
    const asked = this.#asked
    const { data, meta } = await this.#client.notifications.list({ before_id: last.id })
    if (asked !== this.#asked) return
    this.items = this.#merge([...this.items, ...data])
    this.hasMore = data.length >= meta.per_page
    this.#changed()
  }

  /** Takes in one that has just come. @returns whether it is new here */
  arrive(notification: Notification): boolean {
    const known = this.items.some(({ id }) => id === notification.id) || this.#arrived.has(notification.id)
    if (known || this.#deleted.has(notification.id)) return false
    this.#arrived.set(notification.id, notification)
    if (this.state === 'ready') this.items = this.#merge([notification, ...this.items])
    this.#changed()
    return true
  }

  /** Takes in the count as the service has it. */
  count(unread: number): void {
    this.unread = unread
    this.#changed()
  }

  /** @throws CourtsideError */
  read(id: number): Promise<void> {
    return this.#lessUnread([id], async () => {
      try {
        const read = await this.#client.notifications.read(id)
        this.items = this.items.map(item => (item.id === id ? read : item))
      } catch (error) {
        if (!isGone(error)) throw error
        this.#drop(id)
      }
    })
  }

  /** Marks what is on the screen, and nothing that came unseen. @throws CourtsideError */
  readShown(): Promise<void> {
    const ids = this.items.filter(({ is_read }) => !is_read).map(({ id }) => id)
    return this.#lessUnread(ids, async () => {
      if (ids.length > 0) await this.#client.notifications.readAll(ids)
      const [marked, read_at] = [new Set(ids), new Date().toISOString()]
      this.items = this.items.map(item => (marked.has(item.id) ? { ...item, is_read: true, read_at } : item))
    })
  }

  /** @throws CourtsideError */
  delete(id: number): Promise<void> {
    return this.#lessUnread([id], async () => {
      try {
        await this.#client.notifications.delete(id)
      } catch (error) {
        if (!isGone(error)) throw error
      }
      this.#drop(id)
    })
  }

  /**
   * Does what makes these unread no longer. They are taken off the count before, since the service tells the new count at
   * once, maybe sooner than it answers: what was taken off after that would be taken off twice.
   */
  async #lessUnread(ids: readonly number[], work: () => Promise<void>): Promise<void> {
    const isUnread = ({ id, is_read }: Notification) => !is_read && ids.includes(id) && !this.#busy.has(id)
    const unread = this.items.filter(isUnread).map(({ id }) => id)
    for (const id of unread) this.#busy.add(id)
    this.count(Math.max(0, this.unread - unread.length))
    try {
      await work()
    } catch (error) {
      // It may have been done all the same.
      this.#client.notifications.unreadCount().then(
        count => this.count(count),
        () => {},
      )
      throw error
    } finally {
      for (const id of unread) this.#busy.delete(id)
      this.#changed()
    }
  }

  #drop(id: number): void {
    this.#deleted.add(id)
    this.items = this.items.filter(item => item.id !== id)
  }

  #merge(items: Notification[]): Notification[] {
    const byId = new Map(items.filter(({ id }) => !this.#deleted.has(id)).map(item => [item.id, item]))
    return [...byId.values()].sort((one, other) => other.id - one.id)
  }

  #become(state: ListState): void {
    this.state = state
    this.#changed()
  }
}

/** Deleted elsewhere meanwhile. */
function isGone(error: unknown): boolean {
  return error instanceof CourtsideError && error.status === 404
}
