import type { Notification } from '../api.ts'
import type { Courtside } from '../courtside.ts'
import { CourtsideError } from '../error.ts'

export type ListState = 'idle' | 'loading' | 'failed' | 'ready'

/**
 * The loaded notifications, newest first, and the actions on these notifications. While the service prepares an answer,
 * a live notification may arrive, or the user may delete a notification. The answer does not contain this change, so we
 * apply the change to the answer.
 */
export class InboxList {
  items: Notification[] = []
  unread = 0
  hasMore = false
  state: ListState = 'idle'
  /** Whether newer notifications may be missing, because the connection is lost or a load failed. */
  isStale = false
  /** Whether a watch updates the list. */
  isWatched = true
  readonly #client: Courtside
  readonly #onChange: () => void
  readonly #deleted = new Set<number>()
  /** The ids of the unread notifications that a running request deletes or marks as read. */
  readonly #pending = new Set<number>()
  /**
   * The live notifications that have arrived since the last call of `load`. They are added to the answer of this call.
   */
  #arrived = new Map<number, Notification>()
  /**
   * The number of calls of `load` so far. If a later call has started, the list ignores the answer to an earlier call.
   */
  #loads = 0

  constructor(client: Courtside, onChange: () => void) {
    this.#client = client
    this.#onChange = onChange
  }

  /**
   * Fetches the newest notifications: as many as the list contains, but at least 20 and at most 100. This method never
   * throws. `state` shows whether the load failed.
   */
  async load(): Promise<void> {
    this.#loads += 1
    const load = this.#loads
    this.#arrived = new Map()
    if (this.state !== 'ready') this.#setState('loading')
    try {
      const per_page = Math.min(100, Math.max(20, this.items.length))
      const { data, meta } = await this.#client.notifications.list({ per_page })
      if (load !== this.#loads) return
      this.items = this.#merge([...data, ...this.#arrived.values()])
      this.unread = meta.unread_count
      this.hasMore = meta.total > data.length
      this.isStale = false
      this.#setState('ready')
    } catch {
      if (load !== this.#loads) return
      this.isStale = true
      // If a list is already on the screen, keep it, because an old list is more useful than an error message.
      this.#setState(this.state === 'ready' ? 'ready' : 'failed')
    }
  }

  /** Adds the next page of older notifications. @throws CourtsideError */
  async loadMore(): Promise<void> {
    const last = this.items.at(-1)
    if (!last) return this.load()
    const load = this.#loads
    const { data, meta } = await this.#client.notifications.list({ before_id: last.id })
    if (load !== this.#loads) return
    this.items = this.#merge([...this.items, ...data])
    this.hasMore = data.length >= meta.per_page
    this.#onChange()
  }

  /** Adds a live notification. @returns false if the notification is already known or was deleted */
  addArrived(notification: Notification): boolean {
    const isKnown = this.items.some(({ id }) => id === notification.id) || this.#arrived.has(notification.id)
    if (isKnown || this.#deleted.has(notification.id)) return false
    this.#arrived.set(notification.id, notification)
    if (this.state === 'ready') this.items = this.#merge([notification, ...this.items])
    this.#onChange()
    return true
  }

  setStale(isStale: boolean): void {
    this.isStale = isStale
    this.#onChange()
  }

  /** Sets the unread count to the number that the service has reported. */
  setUnread(unread: number): void {
    this.unread = unread
    this.#onChange()
  }

  /** @throws CourtsideError */
  read(id: number): Promise<void> {
    return this.#subtractUnread([id], async () => {
      try {
        const read = await this.#client.notifications.read(id)
        this.items = this.items.map(item => (item.id === id ? read : item))
      } catch (error) {
        if (!isGone(error)) throw error
        this.#remove(id)
      }
    })
  }

  /** Marks only the loaded notifications as read. @throws CourtsideError */
  readShown(): Promise<void> {
    const ids = this.items.filter(({ is_read }) => !is_read).map(({ id }) => id)
    return this.#subtractUnread(ids, async () => {
      if (ids.length > 0) await this.#client.notifications.readAll(ids)
      const [marked, read_at] = [new Set(ids), new Date().toISOString()]
      this.items = this.items.map(item => (marked.has(item.id) ? { ...item, is_read: true, read_at } : item))
    })
  }

  /** @throws CourtsideError */
  delete(id: number): Promise<void> {
    return this.#subtractUnread([id], async () => {
      try {
        await this.#client.notifications.delete(id)
      } catch (error) {
        if (!isGone(error)) throw error
      }
      this.#remove(id)
    })
  }

  /**
   * Runs a request that marks or deletes notifications. The stream may report the new unread count before the answer
   * arrives. If we lowered our count only after the answer, we would subtract the change from a count that already
   * includes it. So we lower the count before the request.
   */
  async #subtractUnread(ids: readonly number[], request: () => Promise<void>): Promise<void> {
    const isUnread = ({ id, is_read }: Notification) => !is_read && ids.includes(id) && !this.#pending.has(id)
    const unread = this.items.filter(isUnread).map(({ id }) => id)
    for (const id of unread) this.#pending.add(id)
    this.setUnread(Math.max(0, this.unread - unread.length))
    try {
      await request()
    } catch (error) {
      // Although the request failed, the service may have applied the change. So we ask the service for the unread
      // count.
      this.#client.notifications.unreadCount().then(
        count => this.setUnread(count),
        () => {},
      )
      throw error
    } finally {
      for (const id of unread) this.#pending.delete(id)
      this.#onChange()
    }
  }

  #remove(id: number): void {
    this.#deleted.add(id)
    this.items = this.items.filter(item => item.id !== id)
  }

  #merge(items: Notification[]): Notification[] {
    const byId = new Map(items.filter(({ id }) => !this.#deleted.has(id)).map(item => [item.id, item]))
    return [...byId.values()].sort((one, other) => other.id - one.id)
  }

  #setState(state: ListState): void {
    this.state = state
    this.#onChange()
  }
}

/** Returns whether the service answered that the notification does not exist. */
function isGone(error: unknown): boolean {
  return error instanceof CourtsideError && error.status === 404
}
