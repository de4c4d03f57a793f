import type { Notification } from './api.ts'
import { callListener } from './listener.ts'

/**
 * How things stand. What came between two of them may have been missed: a client that isn't there yet fetches the list.
 */
export type Sync = { unread_count: number; latest_id: number | null }

/** `waiting`: cut off, and soon trying again. `stopped`: for good, by `stop`, the signal or the session's end. */
export type WatchState = 'connecting' | 'live' | 'polling' | 'waiting' | 'stopped'

export type Watcher = {
  /** First of all, and after every gap. */
  onSync?: (sync: Sync) => void
  /** One that is new. It may be told twice, and ids need not rise: go by the id. */
  onNotification?: (notification: Notification) => void
  /** Whenever it may have changed, with each `onSync` too. */
  onUnreadCount?: (unreadCount: number) => void
  onState?: (state: WatchState) => void
  /** Aborting it stops, as calling what `watch` returned does. */
  signal?: AbortSignal
}

export type Telling = ReturnType<typeof createTelling>

/** Tells a watcher things, until it has stopped. */
export function createTelling(watcher: Watcher, signal: AbortSignal) {
  let state: WatchState | undefined

  function tell(call: () => void): void {
    if (!signal.aborted) callListener(call)
  }

  function unreadCount(count: number): void {
    tell(() => watcher.onUnreadCount?.(count))
  }

  return {
    state: () => state,
    become(next: WatchState): void {
      if (state === next) return
      state = next
      tell(() => watcher.onState?.(next))
    },
    sync(data: Sync): void {
      tell(() => watcher.onSync?.(data))
      unreadCount(data.unread_count)
    },
    notification(notification: Notification): void {
      tell(() => watcher.onNotification?.(notification))
    },
    unreadCount,
  }
}
