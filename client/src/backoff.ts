import { onAbort } from './abort.ts'

export type Backoff = { baseMs: number; maxMs: number }

/**
 * Returns the milliseconds to wait before the next attempt, by exponential backoff with full jitter. The jitter spreads
 * out the attempts of clients that lost the connection at the same moment. The wait is never shorter than `retryAfter`.
 * @param failures the number of consecutive failures, at least 1
 * @param retryAfter the seconds in the Retry-After header of the last answer; 0 if the header is missing
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

/** Waits until the time has passed or the signal is aborted. The returned promise never rejects. */
export async function wait(milliseconds: number, signal?: AbortSignal): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined
  let removeListener = () => {}
  await new Promise<void>(resolve => {
    // With a delay of more than 2 ** 31 - 1 ms, `setTimeout` would fire immediately.
    timer = setTimeout(resolve, Math.min(milliseconds, 2 ** 31 - 1))
    removeListener = onAbort(signal, resolve)
  })
  clearTimeout(timer)
  removeListener()
}
