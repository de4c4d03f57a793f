import type { Notification } from '../api.ts'
import type { Courtside } from '../courtside.ts'
import type { InboxList } from './inbox-list.ts'

type Inbox = {
  isOpen(): boolean
  render(): void
  onArrival(notification: Notification): void
  onSignedOut(): void
}

/**
 * Updates a list with the live notifications. This function fetches the list only while the panel is open. When the
 * panel opens, the element itself fetches the list.
 * @returns a function that stops the updates
 */
export function watchList(client: Courtside, list: InboxList, inbox: Inbox): () => void {
  const stopWatch = client.notifications.watch({
    onState(state) {
      if (state === 'stopped') list.isWatched = false
      if (state === 'waiting') list.setStale(true)
      if (state === 'live' || state === 'polling') list.setStale(false)
    },
    // `watch` calls `onSync` after a gap in the stream. Notifications from this gap may be missing, even if their ids
    // are lower than the newest id. So an open panel always loads the list.
    onSync: () => void (inbox.isOpen() && list.load()),
    onNotification: notification => {
      if (list.addArrived(notification)) inbox.onArrival(notification)
    },
    onUnreadCount: unread => {
      const expected = list.unread
      list.setUnread(unread)
      // If the new count is lower than the count of the list, the user has read or deleted notifications on another
      // device.
      if (inbox.isOpen() && unread < expected) void list.load()
    },
  })
  const removeSignedOutListener = client.onSignedOut(inbox.onSignedOut)
  // Relative times, such as "2 minutes ago", change every minute. So the element renders the list every minute while
  // the panel is open.
  const refreshTimer = setInterval(() => inbox.isOpen() && inbox.render(), 60_000)
  for (const name of ['online', 'offline']) addEventListener(name, inbox.render)
  return () => {
    list.isWatched = false
    stopWatch()
    removeSignedOutListener()
    clearInterval(refreshTimer)
    for (const name of ['online', 'offline']) removeEventListener(name, inbox.render)
  }
}
