import type { Notification } from '../api.ts'
import type { Courtside } from '../courtside.ts'
import type { InboxList } from './inbox-list.ts'

type Panel = { isOpen(): boolean; onArrival(notification: Notification): void }

/**
 * Updates a list with the live notifications. This function fetches the list only while the panel is open. When the
 * panel opens, the element itself fetches the list.
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
      // If the new count is lower than the count of the list, the user has read or deleted notifications on another
      // device.
      if (panel.isOpen() && unread < expected) void list.load()
    },
  })
}
