import type { Notification } from './api.ts'
import { backOff, wait } from './backoff.ts'
import { CourtsideError } from './error.ts'
import { readEvents } from './event-stream.ts'
import type { NotificationPage } from './notifications.ts'
import { poll } from './poll.ts'

/** How things stand. What came between two of them may have been missed: a client that isn't there yet fetches the list. */
export type Sync = { unread_count: number; latest_id: number | null }

/** `waiting`: cut off, and soon trying again. `stopped`: for good, by `stop`, the signal or the session's end. */
export type WatchState = 'connecting' | 'live' | 'polling' | 'waiting' | 'stopped'

export type Watcher = {
  /** First of all, and after every gap. */
  onSync?: (sync: Sync) => void
  /** One that is new. It may be told twice, and ids need not rise: go by the id. */
  onNotification?: (notification: Notification) => void
  /** Whenever it may have changed, with each `onSync` too. */
  onUnreadCount?: (unreadCount: number) => void
  onState?: (state: WatchState) => void
  /** Aborting it stops, as calling what `watch` returned does. */
  signal?: AbortSignal
}

export type Source = {
  /** Whether a stream can be had at all. */
  streams: boolean
  signedIn(): Promise<boolean>
  onSignedOut(listener: () => void): () => void
  open(signal: AbortSignal): Promise<Response>
  newest(): Promise<NotificationPage>
}

export type Timing = typeof TIMING

const TIMING = {
  /** For the answer's head. A proxy that keeps it back is no way for a stream. */
  headMs: 15_000,
  /** There is a heartbeat every 20 s: two were lost. */
  silenceMs: 45_000,
  /** A stream that ends sooner counts as a failure, so that a sixth tab doesn't drive the oldest of five out for ever. */
  steadyMs: 30_000,
  /** So many failures in a row, and it is asked instead. */
  mostFailures: 3,
  pollMs: 30_000,
  /** After so many rounds of asking the stream gets another try. */
  mostPolls: 10,
  baseMs: 2_000,
  mostMs: 60_000,
}

/** See `Notifications.watch`. */
export function watch(source: Source, watcher: Watcher, timing: Timing = TIMING): () => void {
  const stopping = new AbortController()
  const { signal } = stopping
  let state: WatchState | undefined
  let nudge = () => {}

  function tell(call: () => void): void {
    if (signal.aborted) return
    try {
      call()
    } catch (error) {
      // A fault of the listener's: reported as the event loop reports such, and no reason to stop.
      setTimeout(() => {
        throw error
      })
    }
  }

  function become(next: WatchState): void {
    if (state === next) return
    state = next
    tell(() => watcher.onState?.(next))
  }

  function stop(): void {
    if (signal.aborted) return
    become('stopped')
    stopping.abort()
    offSignedOut()
    watcher.signal?.removeEventListener('abort', stop)
    globalThis.removeEventListener?.('online', wake)
  }

  function wake(): void {
    nudge()
  }

  function sync(data: Sync): void {
    tell(() => watcher.onSync?.(data))
    tell(() => watcher.onUnreadCount?.(data.unread_count))
  }

  /** Waits, or less if the network is back. */
  async function pause(milliseconds: number): Promise<void> {
    const waiting = new AbortController()
    nudge = () => waiting.abort()
    signal.addEventListener('abort', nudge)
    await wait(milliseconds, waiting.signal)
    signal.removeEventListener('abort', nudge)
  }

  async function run(): Promise<void> {
    let { streams } = source
    let failures = 0
    while (!signal.aborted && (await source.signedIn())) {
      if (!streams || failures >= timing.mostFailures) {
        await poll(source, timing, { signal, streams, become, pause, sync, watcher, tell })
        // One try: it either holds or is the failure that leads back here.
        failures = timing.mostFailures - 1
        continue
      }
      const began = Date.now()
      let retryAfter: number | undefined
      try {
        if (!(await follow(source, timing, { signal, become, sync, watcher, tell }))) streams = false
      } catch (error) {
        if (error instanceof CourtsideError) retryAfter = error.retryAfter
      }
      failures = state === 'live' && Date.now() - began >= timing.steadyMs ? 1 : failures + 1
      if (signal.aborted || !streams || failures >= timing.mostFailures) continue
      become('waiting')
      await pause(backOff(failures, timing, retryAfter))
    }
    stop()
  }

  const offSignedOut = source.onSignedOut(stop)
  watcher.signal?.addEventListener('abort', stop)
  globalThis.addEventListener?.('online', wake)
  if (watcher.signal?.aborted) stop()
  else run().catch(stop)
  return stop
}

export type Telling = {
  signal: AbortSignal
  become: (state: WatchState) => void
  sync: (data: Sync) => void
  watcher: Watcher
  tell: (call: () => void) => void
}

/** Follows one stream to its end. @returns false if bodies can't be streamed here @throws whatever broke it */
async function follow(source: Source, timing: Timing, { signal, become, sync, watcher, tell }: Telling) {
  become('connecting')
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
        become('live')
        sync(JSON.parse(data))
      } else if (name === 'notification') {
        const notification: Notification = JSON.parse(data)
        tell(() => watcher.onNotification?.(notification))
      } else if (name === 'unread_count') {
        const { unread_count } = JSON.parse(data)
        tell(() => watcher.onUnreadCount?.(unread_count))
      }
    })
    return true
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', abort)
    abort()
  }
}
