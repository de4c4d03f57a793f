import type { InboxState } from './inbox-changes.ts'

/**
 * Transactions do not commit in the order of the notification ids. But each transaction commits within this time after
 * it has taken its ids, because a statement ends after 30 s, and an idle transaction after 60 s.
 */
export const MAX_COMMIT_DELAY_MS = 5 * 60_000

/**
 * Records which notifications of a user the streams of this process have sent. Every notification up to the floor
 * counts as sent. A set contains the sent notifications above the floor. So a notification is sent once, even if it
 * commits after a notification with a higher id. Times are times of `performance.now()`.
 */
export class InboxCursor {
  readonly userId: number
  #floor: number
  /** The ids above the floor that were sent, and when. */
  readonly #sentAt = new Map<number, number>()
  /** The unread count that was sent last. */
  unreadCount: number
  /** When the streams last got an event. */
  lastEventAt: number

  /** @param state the state of the inbox that the first `sync` of the user reports */
  constructor(userId: number, { floor, sentIds, unreadCount }: InboxState, nowMs: number) {
    this.userId = userId
    this.#floor = floor
    this.unreadCount = unreadCount
    this.lastEventAt = nowMs
    this.markSent(sentIds, nowMs)
  }

  get floor(): number {
    return this.#floor
  }

  get sentIds(): Iterable<number> {
    return this.#sentAt.keys()
  }

  markSent(ids: readonly number[], nowMs: number): void {
    for (const id of ids) this.#sentAt.set(id, nowMs)
  }

  /**
   * Raises the floor to the highest id that was sent more than five minutes ago. By now, every transaction with a lower
   * id has ended. Call this only after a read whose rows were all sent.
   */
  raiseFloor(nowMs: number): void {
    for (const [id, sentAt] of this.#sentAt) {
      if (sentAt < nowMs - MAX_COMMIT_DELAY_MS && id > this.#floor) this.#floor = id
    }
    for (const id of this.#sentAt.keys()) if (id <= this.#floor) this.#sentAt.delete(id)
  }
}
