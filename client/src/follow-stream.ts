import { onAbort } from './abort.ts'
import { readEvents } from './event-stream.ts'
import type { Watch } from './watch-types.ts'

/**
 * Opens one stream and reports its events until the stream ends or the signal is aborted.
 * @returns true after the stream has ended. If the platform cannot read the body of an answer as a stream, returns
 * false.
 * @throws CourtsideError if the service refuses the request
 * @throws the platform's error if the connection breaks during the stream
 */
export async function followStream({ source, timing, notifier, signal }: Omit<Watch, 'pause'>): Promise<boolean> {
  if (signal.aborted) return true
  notifier.setState('connecting')
  const attempt = new AbortController()
  const abort = () => attempt.abort()
  let timer = setTimeout(abort, timing.headMs)
  const removeListener = onAbort(signal, abort)
  try {
    const reader = (await source.openStream(attempt.signal)).body?.getReader?.()
    if (!reader) return false
    const restartTimer = () => {
      clearTimeout(timer)
      timer = setTimeout(abort, timing.idleMs)
    }
    // An app's own `fetch` may ignore the signal. So we cancel the body as well, and report no event after an abort.
    onAbort(attempt.signal, () => void reader.cancel().catch(() => {}))
    await readEvents(reader, restartTimer, (name, data) => {
      if (attempt.signal.aborted) return
      if (name === 'sync') {
        notifier.setState('live')
        notifier.notifySync(JSON.parse(data))
      }
      if (name === 'notification') notifier.notifyNotification(JSON.parse(data))
      if (name === 'unread_count') notifier.notifyUnreadCount(JSON.parse(data).unread_count)
    })
    return true
  } finally {
    clearTimeout(timer)
    removeListener()
    abort()
  }
}
