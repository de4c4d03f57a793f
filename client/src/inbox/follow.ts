import type { Notification } from '../api.ts'
import type { Courtside } from '../courtside.ts'
import type { InboxList } from './inbox-list.ts'

type Panel = { isShown(): boolean; arrived(notification: Notification): void }

/** Keeps a list as it is at the service. What isn't looked at is fetched when it is. @returns stop */
export function follow(client: Courtside, list: InboxList, panel: Panel): () => void {
  return client.notifications.watch({
    // Something may have been missed.
    onSync: () => void (panel.isShown() && list.load()),
    onNotification: notification => {
      if (list.arrive(notification)) panel.arrived(notification)
    },
    onUnreadCount: unread => {
      const expected = list.unread
      list.count(unread)
      // Fewer than is known of here: another device has marked or deleted some.
      if (panel.isShown() && unread < expected) void list.load()
    },
  })
}
