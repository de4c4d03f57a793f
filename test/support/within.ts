const TIMEOUT_MS = 30_000

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
