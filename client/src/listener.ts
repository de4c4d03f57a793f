/**
 * Calls a listener. If the listener throws, a timer rethrows the error, so the error does not reach the caller of this
 * function.
 */
export function callListener(call: () => void): void {
  try {
    call()
  } catch (error) {
    setTimeout(() => {
      throw error
    })
  }
}
