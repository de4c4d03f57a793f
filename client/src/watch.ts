import { computeBackoffMs, wait } from './backoff.ts'
import { CourtsideError } from './error.ts'
import { followStream } from './follow-stream.ts'
import { poll } from './poll.ts'
import type { NotificationSource, Timing, Watch, Watcher } from './watch-types.ts'
import { createNotifier } from './watcher-notifier.ts'

const TIMING: Timing = {
  headMs: 15_000,
  // The service sends a heartbeat every 20 s, so a stream that is silent for 45 s has missed two heartbeats.
  idleMs: 45_000,
  // If a user opens a sixth stream, the service ends the oldest stream. The tab that lost its stream then reconnects,
  // so another tab loses its stream. Without a minimum duration, six open tabs would end each other's streams forever.
  // With a minimum duration, the short streams count as failures, so the affected tabs start to poll the list.
  minStreamMs: 30_000,
  maxFailures: 3,
  pollMs: 30_000,
  maxPolls: 10,
  baseMs: 2_000,
  maxMs: 60_000,
}

/** Starts a watch, as described at `Notifications.watch`. */
export function watch(source: NotificationSource, watcher: Watcher, timing: Timing = TIMING): () => void {
  const stopping = new AbortController()
  const { signal } = stopping
  const notifier = createNotifier(watcher, signal)
  let endPause = () => {}
  const onOnline = () => endPause()

  async function pause(milliseconds: number): Promise<void> {
    const waiting = new AbortController()
    endPause = () => waiting.abort()
    signal.addEventListener('abort', endPause)
    await wait(milliseconds, waiting.signal)
    signal.removeEventListener('abort', endPause)
  }

  function stop(): void {
    if (signal.aborted) return
    notifier.setState('stopped')
    stopping.abort()
    removeSignedOutListener()
    watcher.signal?.removeEventListener('abort', stop)
    globalThis.removeEventListener?.('online', onOnline)
  }

  const removeSignedOutListener = source.onSignedOut(stop)
  watcher.signal?.addEventListener('abort', stop)
  globalThis.addEventListener?.('online', onOnline)
  if (watcher.signal?.aborted) stop()
  else streamOrPoll({ source, timing, notifier, signal, pause }).then(stop, stop)
  return stop
}

/** Follows streams until the watch stops or the session ends. After repeated failures, polls the list for a time. */
async function streamOrPoll({ source, timing, notifier, signal, pause }: Watch): Promise<void> {
  let { canStream } = source
  let failures = 0
  while (!signal.aborted && (await source.signedIn())) {
    if (!canStream || failures >= timing.maxFailures) {
      await poll({ source: { ...source, canStream }, timing, notifier, signal, pause })
      // The next iteration tries one stream. If this stream fails, the watch polls again.
      failures = timing.maxFailures - 1
      continue
    }
    const startedAt = Date.now()
    let retryAfter: number | undefined
    try {
      canStream = await followStream({ source, timing, notifier, signal })
    } catch (error) {
      if (error instanceof CourtsideError) retryAfter = error.retryAfter
    }
    const wasSteady = notifier.state() === 'live' && Date.now() - startedAt >= timing.minStreamMs
    failures = wasSteady ? 1 : failures + 1
    if (signal.aborted || !canStream || failures >= timing.maxFailures) continue
    notifier.setState('waiting')
    await pause(computeBackoffMs(failures, timing, retryAfter))
  }
}
