import { setTimeout as delay } from 'node:timers/promises'

const RETRY_MS = 250

export type Loop = { wake: () => void; ended: Promise<void> }

/**
 * Calls `work` every `everyMs` milliseconds, after each `wake`, and immediately again if `work` returns true. If `work`
 * fails, the loop calls it again after 250 ms. The loop ends when `isOver` returns true.
 * @param onFailure receives the first error of each series of failures
 */
export function startLoop(
  everyMs: number,
  work: () => Promise<boolean>,
  { isOver, onFailure }: { isOver: () => boolean; onFailure: (error: unknown) => void },
): Loop {
  let pause = new AbortController()
  let isFailing = false
  const run = async () => {
    while (!isOver()) {
      pause = new AbortController()
      const outcome = await work().catch(error => {
        if (!isFailing) onFailure(error)
        return 'failed' as const
      })
      isFailing = outcome === 'failed'
      if (outcome === true) continue
      if (isFailing) await delay(RETRY_MS)
      else await delay(everyMs, undefined, { signal: pause.signal }).catch(() => {})
    }
  }
  return { wake: () => pause.abort(), ended: run() }
}
