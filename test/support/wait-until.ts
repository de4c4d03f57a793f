import { setTimeout as delay } from 'node:timers/promises'

/** Polls until `condition` is true. @throws Error if `condition` is still false after `timeoutMs` milliseconds */
export async function waitUntil(condition: () => boolean | Promise<boolean>, timeoutMs = 30_000): Promise<void> {
  const deadline = performance.now() + timeoutMs
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`still false after ${timeoutMs} ms: ${condition}`)
    await delay(1)
  }
}
