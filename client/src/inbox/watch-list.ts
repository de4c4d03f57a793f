import type { Notification } from '../api.ts'
import type { Courtside } from '../courtside.ts'
import type { InboxList } from './inbox-list.ts'

type Panel = { isOpen(): boolean; onArrival(notification: Notification): void }

/**
 * Updates a list with the live notifications. While the panel is closed, this function does not fetch the list, because
 * the element fetches the list when the panel opens.
 * @returns a function that stops the updates
 */
export function watchList(client: Courtside, list: InboxList, panel: Panel): () => void {
  return client.notifications.watch({
    // `watch` calls `onSync` after a gap in the stream. Notifications from this gap may be missing, so an open panel
    // loads the list.
    onSync: () => void (panel.isOpen() && list.load()),
    onNotification: notification => {
      if (list.addArrived(notification)) panel.onArrival(notification)
    },
    onUnreadCount: unread => {
      const expected = list.unread
      list.setUnread(unread)
      // If the new count is lower than the count of the list, another device has read or deleted notifications.
      if (panel.isOpen() && unread < expected) void list.load()
    },
  })
}
