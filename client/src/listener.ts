/** Calls a listener. An error that it throws becomes an uncaught error and does not disturb the caller. */
export function callListener(call: () => void): void {
  try {
    call()
  } catch (error) {
    setTimeout(() => {
      throw error
    })
  }
}
