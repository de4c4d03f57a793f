/** "one or a batch of up to 100", "1 MiB a batch" */
const MOST_EVENTS = 100
const MOST_BYTES = 1024 * 1024

/** Events in JSON, grouped as large as the intake takes them, the brackets and commas counted. */
export function batchesOf(events: string[]): string[][] {
  const encoder = new TextEncoder()
  const batches: string[][] = []
  let room = 0
  for (const event of events) {
    const bytes = encoder.encode(event).length + 1
    const last = batches.at(-1)
    if (last && last.length < MOST_EVENTS && bytes <= room) {
      last.push(event)
      room -= bytes
    } else {
      batches.push([event])
      room = MOST_BYTES - 1 - bytes
    }
  }
  return batches
}
