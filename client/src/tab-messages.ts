import type { Notification } from './api.ts'
import type { Snapshot, Sync, WatcherNotifier } from './watch-types.ts'

/** A message between two tabs. A following tab sends `ask`. The leading tab sends all others. */
export type Message =
  | { type: 'ask'; look: boolean }
  | ({ type: 'answer' } & Snapshot)
  | { type: 'sync'; sync: Sync }
  | { type: 'notification'; notification: Notification }
  | { type: 'unread'; count: number }

type Inbox = { notifier: WatcherNotifier; latest: () => Snapshot }

/** Creates a notifier that calls the notifier of the leading tab, and sends each call to the other tabs. */
export function createLeaderNotifier({ notifier, latest }: Inbox, post: (message: Message) => void): WatcherNotifier {
  return {
    state: notifier.state,
    setState(state) {
      notifier.setState(state)
      post({ type: 'answer', ...latest() })
    },
    notifySync(sync) {
      notifier.notifySync(sync)
      post({ type: 'sync', sync })
    },
    notifyNotification(notification) {
      notifier.notifyNotification(notification)
      post({ type: 'notification', notification })
    },
    notifyUnreadCount(count) {
      notifier.notifyUnreadCount(count)
      post({ type: 'unread', count })
    },
  }
}

/**
 * Passes a message from the leading tab to the notifier of this tab.
 * @param isSynced whether this tab has received a sync before
 * @returns whether this tab has now received a sync
 */
export function receive(message: Message, { notifier, latest }: Inbox, isSynced: boolean): boolean {
  if (message.type === 'sync') {
    notifier.notifySync(message.sync)
    return true
  }
  if (message.type === 'notification') notifier.notifyNotification(message.notification)
  if (message.type === 'unread') notifier.notifyUnreadCount(message.count)
  if (message.type !== 'answer') return isSynced
  const { state, sync } = message
  if (state) notifier.setState(state)
  if (!sync) return isSynced
  const known = latest().sync
  // A difference means that this tab has missed a message.
  const isKnown = isSynced && known?.unread_count === sync.unread_count && known.latest_id === sync.latest_id
  if (!isKnown) notifier.notifySync(sync)
  return true
}
