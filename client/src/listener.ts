/** Calls a listener. A fault of its own is reported as the event loop reports such, and harms nobody else. */
export function callListener(call: () => void): void {
  try {
    call()
  } catch (error) {
    setTimeout(() => {
      throw error
    })
  }
}
