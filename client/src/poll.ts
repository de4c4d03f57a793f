import type { Notification } from './api.ts'
import { computeBackoffMs } from './backoff.ts'
import type { NotificationPage } from './endpoints.ts'
import { CourtsideError } from './error.ts'
import type { Watch, WatcherNotifier } from './watch-types.ts'

/**
 * Polls the newest page of notifications and reports new notifications to the notifier. If the platform supports
 * streams, this function returns after `maxPolls` polls, or after the first successful poll that follows a failed poll.
 * The caller then tries the stream again.
 */
export async function poll({ source, timing, notifier, signal, pause }: Watch): Promise<void> {
  let previous: NotificationPage | undefined
  let failures = 0
  for (let polls = 0; !signal.aborted && (await source.signedIn()); polls += 1) {
    if (source.canStream && polls >= timing.maxPolls) return
    let retryAfter: number | undefined
    try {
      const page = await source.fetchNewest(signal)
      if (signal.aborted || (source.canStream && failures > 0)) return
      failures = 0
      notifier.setState('polling')
      notifyChanges(previous, page, notifier)
      previous = page
    } catch (error) {
      if (signal.aborted) return
      failures += 1
      if (error instanceof CourtsideError) retryAfter = error.retryAfter
      notifier.setState('waiting')
    }
    await pause(failures > 0 ? computeBackoffMs(failures, timing, retryAfter) : timing.pollMs, retryAfter)
  }
}

function notifyChanges(
  previous: NotificationPage | undefined,
  page: NotificationPage,
  notifier: WatcherNotifier,
): void {
  const { unread_count } = page.meta
  const arrived = previous && findArrived(previous, page)
  if (!arrived) {
    notifier.notifySync({ unread_count, latest_id: page.data[0]?.id ?? null })
    return
  }
  arrived.forEach(notifier.notifyNotification)
  if (unread_count !== previous.meta.unread_count) notifier.notifyUnreadCount(unread_count)
}

/**
 * Returns the notifications that only the newer page contains, oldest first.
 * @returns undefined if there may be more new notifications than one page can contain
 */
function findArrived(previous: NotificationPage, page: NotificationPage): Notification[] | undefined {
  const known = new Set(previous.data.map(({ id }) => id))
  // After a deletion, an older notification moves up to the end of the page. Such a notification is not new, and its id
  // is lower than all ids of the previous page.
  const isFull = previous.data.length >= previous.meta.per_page
  const lowest = isFull ? previous.data.at(-1)!.id : 0
  const arrived = page.data.filter(({ id }) => !known.has(id) && id > lowest)
  return arrived.length > 0 && arrived.length >= page.meta.per_page ? undefined : arrived.reverse()
}
