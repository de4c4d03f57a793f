import { setTimeout as delay } from 'node:timers/promises'

const GATHER_MS = 20

/**
 * Returns a function that waits for a random time of at most `maxMs`, and then up to 20 ms for other deliveries.
 * Deliveries that begin together send their statements in one write, and are finished together.
 */
export function createStartDelay(maxMs: number, signal: AbortSignal): () => Promise<void> {
  let gathering: Promise<void> | undefined
  return async () => {
    await delay(Math.random() * maxMs, undefined, { signal }).catch(() => {})
    // A worker that stops gives its rows back at once.
    if (signal.aborted) return
    gathering ??= delay(GATHER_MS).finally(() => {
      gathering = undefined
    })
    await gathering
  }
}
