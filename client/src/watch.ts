import { backOff, wait } from './backoff.ts'
import type { NotificationPage } from './endpoints.ts'
import { CourtsideError } from './error.ts'
import { follow } from './follow.ts'
import { poll } from './poll.ts'
import { createTelling, type Telling, type Watcher } from './telling.ts'

export type Source = {
  /** Whether a stream can be had at all. */
  streams: boolean
  signedIn(): Promise<boolean>
  onSignedOut(listener: () => void): () => void
  open(signal: AbortSignal): Promise<Response>
  newest(): Promise<NotificationPage>
}

/** Waits, or less if the network is back or the watcher stops. */
export type Pause = (milliseconds: number) => Promise<void>

export type Timing = typeof TIMING

const TIMING = {
  /** For the answer's head. A proxy that keeps it back is no way for a stream. */
  headMs: 15_000,
  /** There is a heartbeat every 20 s: two were lost. */
  silenceMs: 45_000,
  /**
   * A stream that ends sooner counts as a failure, so that a sixth tab doesn't drive the oldest of five out for ever.
   */
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
  const telling = createTelling(watcher, signal)
  let nudge = () => {}
  const wake = () => nudge()

  async function pause(milliseconds: number): Promise<void> {
    const waiting = new AbortController()
    nudge = () => waiting.abort()
    signal.addEventListener('abort', nudge)
    await wait(milliseconds, waiting.signal)
    signal.removeEventListener('abort', nudge)
  }

  function stop(): void {
    if (signal.aborted) return
    telling.become('stopped')
    stopping.abort()
    offSignedOut()
    watcher.signal?.removeEventListener('abort', stop)
    globalThis.removeEventListener?.('online', wake)
  }

  const offSignedOut = source.onSignedOut(stop)
  watcher.signal?.addEventListener('abort', stop)
  globalThis.addEventListener?.('online', wake)
  if (watcher.signal?.aborted) stop()
  else keepTelling(source, timing, telling, signal, pause).then(stop, stop)
  return stop
}

/** Streams, and asks where that fails, for as long as there is a session. */
async function keepTelling(source: Source, timing: Timing, telling: Telling, signal: AbortSignal, pause: Pause) {
  let { streams } = source
  let failures = 0
  while (!signal.aborted && (await source.signedIn())) {
    if (!streams || failures >= timing.mostFailures) {
      await poll({ ...source, streams }, timing, telling, signal, pause)
      // One try: it either holds or is the failure that leads back here.
      failures = timing.mostFailures - 1
      continue
    }
    const began = Date.now()
    let retryAfter: number | undefined
    try {
      streams = await follow(source, timing, telling, signal)
    } catch (error) {
      if (error instanceof CourtsideError) retryAfter = error.retryAfter
    }
    failures = telling.state() === 'live' && Date.now() - began >= timing.steadyMs ? 1 : failures + 1
    if (signal.aborted || !streams || failures >= timing.mostFailures) continue
    telling.become('waiting')
    await pause(backOff(failures, timing, retryAfter))
  }
}
