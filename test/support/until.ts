const TIMEOUT_MS = 30_000

/**
 * Polls a condition until it holds, at each turn of the event loop.
 * @param what names the condition in the error
 * @throws after 30 s
 */
export async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const start = performance.now()
  while (!(await condition())) {
    if (performance.now() - start > TIMEOUT_MS) throw new Error(`waited 30 s in vain until ${what}`)
    await new Promise(resolve => setImmediate(resolve))
  }
}

/**
 * Waits for a promise.
 * @param what names the awaited event in the error
 * @throws after 30 s, and what the promise throws
 */
export async function within<T>(what: string, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited 30 s in vain for ${what}`)), TIMEOUT_MS)
  })
  return Promise.race([promise, timeout]).finally(() => clearTimeout(timer))
}
