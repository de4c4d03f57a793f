import type { Snapshot, WatcherNotifier } from './watch-types.ts'

/** The calls of the leading tab's notifier that the other tabs repeat. */
const CALLS = ['notifySync', 'notifyNotification', 'notifyUnreadCount'] as const

/** A message between two tabs. A following tab sends `ask`. The leading tab sends all other messages. */
export type Message =
  | { type: 'ask'; look: boolean }
  | ({ type: 'answer' } & Snapshot)
  | { type: (typeof CALLS)[number]; value: never }

type Inbox = { notifier: WatcherNotifier; latest: () => Snapshot }

/** Creates a notifier that calls the notifier of the leading tab, and sends each call to the other tabs. */
export function createLeaderNotifier({ notifier, latest }: Inbox, post: (message: Message) => void): WatcherNotifier {
  const leader = { ...notifier }
  leader.setState = state => {
    notifier.setState(state)
    post({ type: 'answer', ...latest() })
  }
  for (const type of CALLS) {
    leader[type] = (value: never) => {
      notifier[type](value)
      post({ type, value })
    }
  }
  return leader
}

/**
 * Passes a message from the leading tab to the notifier of this tab.
 * @param isSynced whether this tab has received a sync before
 * @returns whether this tab has now received a sync
 */
export function receive(message: Message, { notifier, latest }: Inbox, isSynced: boolean): boolean {
  if (message.type === 'ask') return isSynced
  if (message.type !== 'answer') {
    notifier[message.type](message.value)
    return isSynced || message.type === 'notifySync'
  }
  const { state, sync } = message
  if (state) notifier.setState(state)
  if (!sync) return isSynced
  const known = latest().sync
  // A difference means that this tab has missed a message.
  const isKnown = isSynced && known?.unread_count === sync.unread_count && known.latest_id === sync.latest_id
  if (!isKnown) notifier.notifySync(sync)
  return true
}
