import { onAbort } from './abort.ts'
import { computeBackoffMs, wait } from './backoff.ts'
import { CourtsideError } from './error.ts'
import { followStream } from './follow-stream.ts'
import { poll } from './poll.ts'
import type { Timing, Watch } from './watch-types.ts'

export const TIMING: Timing = {
  headMs: 15_000,
  // The service sends a heartbeat every 20 s, so a stream that is silent for 45 s has missed two heartbeats.
  idleMs: 45_000,
  // If a user opens a sixth stream, the service ends the oldest stream. The device that lost its stream then
  // reconnects, so another device loses its stream. Without a minimum duration, six devices would end each other's
  // streams forever. With a minimum duration, the short streams count as failures, so the affected devices start to
  // poll the list.
  minStreamMs: 30_000,
  minLookMs: 1_000,
  maxFailures: 3,
  pollMs: 30_000,
  maxPolls: 10,
  baseMs: 2_000,
  maxMs: 60_000,
}

/** Receives the changes of the inbox and calls the notifier, until the signal is aborted or the session ends. */
export class WatchRun {
  readonly #watch: Watch
  #interrupt: (isNetworkNew: boolean) => void = () => {}

  constructor(watch: Omit<Watch, 'pause'>) {
    this.#watch = { ...watch, pause: (milliseconds, retryAfter) => this.#pause(milliseconds, retryAfter) }
  }

  /**
   * Checks for changes immediately, because the connection may be dead. Ends a pause, or opens a new stream.
   * @param isNetworkNew whether to replace a stream even if it was opened less than `minLookMs` ago
   */
  look(isNetworkNew: boolean): void {
    this.#interrupt(isNetworkNew)
  }

  /** Follows streams. After repeated failures, polls the list for a time. */
  async run(): Promise<void> {
    const { source, timing, notifier, signal } = this.#watch
    let { canStream } = source
    let failures = 0
    while (!signal.aborted && (await source.signedIn())) {
      if (!canStream || failures >= timing.maxFailures) {
        await poll({ ...this.#watch, source: { ...source, canStream } })
        // The next iteration tries one stream. If this stream fails, the watch polls again.
        failures = timing.maxFailures - 1
        continue
      }
      const startedAt = Date.now()
      const { end, retryAfter } = await this.#stream(startedAt)
      if (end === 'replaced') continue
      canStream = end !== 'unreadable'
      const wasSteady = notifier.state() === 'live' && Date.now() - startedAt >= timing.minStreamMs
      failures = wasSteady ? 1 : failures + 1
      if (signal.aborted || !canStream || failures >= timing.maxFailures) continue
      notifier.setState('waiting')
      await this.#pause(computeBackoffMs(failures, timing, retryAfter), retryAfter)
    }
  }

  async #stream(startedAt: number): Promise<{ end: 'ended' | 'unreadable' | 'replaced'; retryAfter?: number }> {
    const attempt = new AbortController()
    let isReplaced = false
    this.#interrupt = isNetworkNew => {
      if (!isNetworkNew && Date.now() - startedAt < this.#watch.timing.minLookMs) return
      isReplaced = true
      attempt.abort()
    }
    const removeListener = onAbort(this.#watch.signal, () => attempt.abort())
    try {
      const isReadable = await followStream({ ...this.#watch, signal: attempt.signal })
      return { end: isReplaced ? 'replaced' : isReadable ? 'ended' : 'unreadable' }
    } catch (error) {
      if (isReplaced) return { end: 'replaced' }
      const retryAfter = error instanceof CourtsideError ? error.retryAfter : undefined
      return retryAfter === undefined ? { end: 'ended' } : { end: 'ended', retryAfter }
    } finally {
      removeListener()
      this.#interrupt = () => {}
    }
  }

  /** Waits. `look` ends the wait, unless the service asked for the wait with `Retry-After`. */
  async #pause(milliseconds: number, retryAfter?: number): Promise<void> {
    const waiting = new AbortController()
    const removeListener = onAbort(this.#watch.signal, () => waiting.abort())
    if (!retryAfter) this.#interrupt = () => waiting.abort()
    await wait(milliseconds, waiting.signal)
    this.#interrupt = () => {}
    removeListener()
  }
}
