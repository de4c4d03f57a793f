/** How long a tab waits for a lock. A tab that holds the lock longer may be frozen, or its request gets no answer. */
const MAX_WAIT_MS = 5_000

/**
 * Lets only one tab at a time run the work, if the browser has Web Locks. If another tab keeps the lock for more than
 * 5 s, or the browser refuses the lock, runs the work without the lock.
 * @param name the name of the lock
 * @param work is called with true if this tab had to wait for another tab
 */
export async function withLock<T>(name: string, work: (hasWaited: boolean) => Promise<T>): Promise<T> {
  let running: Promise<T> | undefined
  const start = (hasWaited: boolean) => {
    running = work(hasWaited)
    // The lock is free as soon as the work ends. The error reaches the caller through `running`.
    return running.then(() => {}).catch(() => {})
  }
  let hasWaited = false
  const waiting = new AbortController()
  const timer = setTimeout(() => waiting.abort(), MAX_WAIT_MS)
  try {
    const locks = globalThis.navigator.locks
    await locks.request(name, { ifAvailable: true }, lock => (lock ? start(false) : undefined))
    if (!running) {
      hasWaited = true
      await locks.request(name, { signal: waiting.signal }, () => start(true))
    }
  } catch {
    // There are no Web Locks, the browser refuses the lock, or the wait took too long.
  }
  clearTimeout(timer)
  return running ?? work(hasWaited)
}
