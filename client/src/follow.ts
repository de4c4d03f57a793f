import { readEvents } from './event-stream.ts'
import type { Telling } from './telling.ts'
import type { Source, Timing } from './watch.ts'

/** Follows one stream to its end. @returns false if bodies can't be streamed here @throws whatever broke it */
export async function follow(source: Source, timing: Timing, telling: Telling, signal: AbortSignal): Promise<boolean> {
  telling.become('connecting')
  const attempt = new AbortController()
  const abort = () => attempt.abort()
  let timer = setTimeout(abort, timing.headMs)
  signal.addEventListener('abort', abort)
  try {
    const reader = (await source.open(attempt.signal)).body?.getReader?.()
    if (!reader) return false
    const alive = () => {
      clearTimeout(timer)
      timer = setTimeout(abort, timing.silenceMs)
    }
    await readEvents(reader, alive, (name, data) => {
      if (name === 'sync') {
        telling.become('live')
        telling.sync(JSON.parse(data))
      }
      if (name === 'notification') telling.notification(JSON.parse(data))
      if (name === 'unread_count') telling.unreadCount(JSON.parse(data).unread_count)
    })
    return true
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', abort)
    abort()
  }
}
