/**
 * Milliseconds to wait before trying again: back-off with full jitter, so that clients which lost the service together
 * don't come back together; never sooner than the service asked for.
 * @param failures how many there were in a row, from 1
 * @param retryAfter seconds, from the answer
 * @param random between 0 and 1
 */
export function backOff(
  failures: number,
  { baseMs, mostMs }: { baseMs: number; mostMs: number },
  retryAfter = 0,
  random = Math.random(),
): number {
  return retryAfter * 1000 + random * Math.min(mostMs, baseMs * 2 ** (failures - 1))
}

/** Waits, or until the signal is aborted; it resolves either way. */
export function wait(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    if (signal?.aborted) return resolve()
    const done = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', done)
      resolve()
    }
    // Longer ones than a timer can count would fire at once.
    const timer = setTimeout(done, Math.min(milliseconds, 2 ** 31 - 1))
    signal?.addEventListener('abort', done)
  })
}
