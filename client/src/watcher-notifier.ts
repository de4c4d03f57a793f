import { callListener } from './listener.ts'
import type { Watcher, WatcherNotifier, WatchState } from './watch-types.ts'

/**
 * Creates a notifier, which calls the watcher's listeners. After the signal is aborted, the notifier calls no listener.
 */
export function createNotifier(watcher: Watcher, signal: AbortSignal): WatcherNotifier {
  let current: WatchState | undefined

  function callUnlessStopped(call: () => void): void {
    if (!signal.aborted) callListener(call)
  }

  function notifyUnreadCount(count: number): void {
    callUnlessStopped(() => watcher.onUnreadCount?.(count))
  }

  return {
    state: () => current,
    setState(state) {
      if (current === state) return
      current = state
      callUnlessStopped(() => watcher.onState?.(state))
    },
    notifySync(sync) {
      callUnlessStopped(() => watcher.onSync?.(sync))
      notifyUnreadCount(sync.unread_count)
    },
    notifyNotification(notification) {
      callUnlessStopped(() => watcher.onNotification?.(notification))
    },
    notifyUnreadCount,
  }
}
