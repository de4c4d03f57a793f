import type { Notification } from './api.ts'
import { backOff } from './backoff.ts'
import type { NotificationPage } from './endpoints.ts'
import { CourtsideError } from './error.ts'
import type { Telling } from './telling.ts'
import type { Pause, Source, Timing } from './watch.ts'

/**
 * Asks for the newest page now and then, and tells what is new in it. Where there can be a stream it ends after some
 * rounds, or when the service is back after an outage, for the stream to be tried again.
 */
export async function poll(source: Source, timing: Timing, telling: Telling, signal: AbortSignal, pause: Pause) {
  let before: NotificationPage | undefined
  let missed = 0
  for (let rounds = 0; !signal.aborted && (await source.signedIn()); rounds += 1) {
    if (source.streams && rounds >= timing.mostPolls) return
    let retryAfter: number | undefined
    try {
      const page = await source.newest()
      if (source.streams && missed > 0) return
      missed = 0
      telling.become('polling')
      tellDifference(before, page, telling)
      before = page
    } catch (error) {
      missed += 1
      if (error instanceof CourtsideError) retryAfter = error.retryAfter
      telling.become('waiting')
    }
    await pause(missed > 0 ? backOff(missed, timing, retryAfter) : timing.pollMs)
  }
}

function tellDifference(before: NotificationPage | undefined, page: NotificationPage, telling: Telling): void {
  const { unread_count } = page.meta
  const fresh = before && arrivedSince(before, page)
  if (!fresh) {
    telling.sync({ unread_count, latest_id: page.data[0]?.id ?? null })
    return
  }
  fresh.forEach(telling.notification)
  if (unread_count !== before.meta.unread_count) telling.unreadCount(unread_count)
}

/** What a page has that the one before hadn't, oldest first. @returns undefined when there may be more than it shows */
function arrivedSince(before: NotificationPage, page: NotificationPage): Notification[] | undefined {
  const known = new Set(before.data.map(({ id }) => id))
  // Deleting one makes room for an old one at the page's end, which is not new.
  const isFull = before.data.length >= before.meta.per_page
  const lowest = isFull ? before.data.at(-1)!.id : 0
  const fresh = page.data.filter(({ id }) => !known.has(id) && id > lowest)
  return fresh.length > 0 && fresh.length >= page.meta.per_page ? undefined : fresh.reverse()
}
