export type Backoff = { baseMs: number; maxMs: number }

/**
 * Returns the milliseconds to wait before the next attempt, by exponential backoff with full jitter. The jitter spreads
 * out clients that lost the service at the same moment. The result is never less than `retryAfter`.
 * @param failures the number of failures in a row, from 1
 * @param retryAfter seconds, from the answer's Retry-After
 * @param random a number between 0 and 1
 */
export function computeBackoffMs(
  failures: number,
  { baseMs, maxMs }: Backoff,
  retryAfter = 0,
  random = Math.random(),
): number {
  return retryAfter * 1000 + random * Math.min(maxMs, baseMs * 2 ** (failures - 1))
}

/** Resolves after the time has passed or as soon as the signal is aborted. It never rejects. */
export function wait(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    if (signal?.aborted) return resolve()
    const done = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', done)
      resolve()
    }
    // A timer with a longer delay would fire at once.
    const timer = setTimeout(done, Math.min(milliseconds, 2 ** 31 - 1))
    signal?.addEventListener('abort', done)
  })
}
