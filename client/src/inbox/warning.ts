/** The time between the insertion of an element without a client and the warning. */
const CLIENT_WAIT_MS = 5_000
let hasWarned = false

/** Warns once in the console if the element is still without a client after some seconds. */
export function warnWithoutClient(element: HTMLElement & { client: unknown }): void {
  setTimeout(() => {
    if (hasWarned || !element.isConnected || element.client) return
    hasWarned = true
    console.warn('<courtside-inbox> has no client. Set its property `client` to a Courtside object.')
  }, CLIENT_WAIT_MS)
}
