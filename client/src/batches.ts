/** The intake, `POST /internal/v1/events`, refuses a batch of more than 100 events or more than 1 MiB. */
const MAX_BATCH_EVENTS = 100
const MAX_BATCH_BYTES = 1024 * 1024

/**
 * Groups events into batches that the intake accepts. The size of a batch includes the brackets and commas of the JSON
 * array.
 * @param events each event as JSON text
 */
export function splitIntoBatches(events: string[]): string[][] {
  const encoder = new TextEncoder()
  const batches: string[][] = []
  let room = 0
  for (const event of events) {
    const bytes = encoder.encode(event).length + 1
    const last = batches.at(-1)
    if (last && last.length < MAX_BATCH_EVENTS && bytes <= room) {
      last.push(event)
      room -= bytes
    } else {
      batches.push([event])
      room = MAX_BATCH_BYTES - 1 - bytes
    }
  }
  return batches
}
