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
  let isWoken = false
  let endPause = () => {}
  let isFailing = false
  const pause = () =>
    new Promise<void>(resolve => {
      const timer = setTimeout(resolve, everyMs)
      endPause = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  const run = async () => {
    while (!isOver()) {
      isWoken = false
      const outcome = await work().catch(error => {
        if (!isFailing) onFailure(error)
        return 'failed' as const
      })
      isFailing = outcome === 'failed'
      if (outcome === true) continue
      if (isFailing) await delay(RETRY_MS)
      // A `wake` during the work may be about rows that the work did not see.
      else if (!isWoken) await pause()
    }
  }
  const wake = () => {
    isWoken = true
    endPause()
  }
  return { wake, ended: run() }
}
