import type { Notification } from '../api.ts'
import type { Courtside } from '../courtside.ts'
import type { InboxList } from './inbox-list.ts'

type Panel = { isOpen(): boolean; onArrival(notification: Notification): void }

/** Updates a list from the live notifications. A closed panel fetches the list when it opens. @returns stop */
export function watchList(client: Courtside, list: InboxList, panel: Panel): () => void {
  return client.notifications.watch({
    // Notifications may have been missed before a sync.
    onSync: () => void (panel.isOpen() && list.load()),
    onNotification: notification => {
      if (list.addArrived(notification)) panel.onArrival(notification)
    },
    onUnreadCount: unread => {
      const expected = list.unread
      list.setUnread(unread)
      // A count below ours means that another device has marked or deleted some.
      if (panel.isOpen() && unread < expected) void list.load()
    },
  })
}
