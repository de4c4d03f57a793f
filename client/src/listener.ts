/** Calls a listener. If the listener throws, a timer throws its error again, so the error does not reach our caller. */
export function callListener(call: () => void): void {
  try {
    call()
  } catch (error) {
    setTimeout(() => {
      throw error
    })
  }
}
