import { isConflict } from '../db/errors.ts'
import { AppError, unavailable } from '../errors.ts'
import type { EventOutcome } from './intake.ts'
import type { GameEvent } from './parse-event.ts'

const MAX_GROUP_SIZE = 100

/** An event waits for its group as long as a transaction waits for a free connection (`connectionTimeoutMillis`). */
const MAX_WAIT_MS = 5_000

type Ingest = (events: readonly GameEvent[]) => Promise<EventOutcome[]>

type WaitingEvent = {
  event: GameEvent
  resolve: (outcome: EventOutcome) => void
  reject: (error: unknown) => void
  timeout: NodeJS.Timeout
}

/**
 * Ingests events that producers report one by one. Each group of events is one transaction, so its events share one
 * flush to the disk. One group runs at a time. The events that arrive meanwhile wait, and form the next groups in the
 * order of their arrival. If no group runs, an event does not wait.
 */
export class EventGroups {
  readonly #ingest: Ingest
  readonly #waiting: WaitingEvent[] = []
  #running: Promise<void> | undefined

  /** @param ingest ingests events in one transaction, and returns their outcomes in the same order */
  constructor(ingest: Ingest) {
    this.#ingest = ingest
  }

  /** The number of events that wait for the next groups. */
  get waiting(): number {
    return this.#waiting.length
  }

  /** @throws AppError `unavailable` if the event has waited 5 s, or if the database is lost */
  add(event: GameEvent): Promise<EventOutcome> {
    const { promise, resolve, reject } = Promise.withResolvers<EventOutcome>()
    // All events have the same limit, so the first event in the queue is the event that has waited longest.
    const timeout = setTimeout(() => {
      this.#waiting.shift()
      reject(unavailable(new Error('the event has waited too long for the events before it')))
    }, MAX_WAIT_MS)
    this.#waiting.push({ event, resolve, reject, timeout })
    this.#running ??= this.#run()
    return promise
  }

  /** Waits until no event waits and no group runs. */
  async drain(): Promise<void> {
    await this.#running
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      const group = this.#waiting.splice(0, MAX_GROUP_SIZE)
      for (const { timeout } of group) clearTimeout(timeout)
      await this.#ingestGroup(group)
    }
    this.#running = undefined
  }

  async #ingestGroup(group: readonly WaitingEvent[]): Promise<void> {
    try {
      const outcomes = await this.#ingestAgainAfterConflict(group.map(({ event }) => event))
      group.forEach(({ resolve }, index) => {
        resolve(outcomes[index]!)
      })
    } catch (error) {
      if (group.length === 1 || isUnavailable(error)) rejectAll(group, error)
      else await this.#ingestOneByOne(group)
    }
  }

  /** Ingests the events of a failed group in their order, so the event at fault fails alone. */
  async #ingestOneByOne(group: readonly WaitingEvent[]): Promise<void> {
    for (const [index, { event, resolve, reject }] of group.entries()) {
      try {
        const [outcome] = await this.#ingestAgainAfterConflict([event])
        resolve(outcome!)
      } catch (error) {
        if (isUnavailable(error)) return rejectAll(group.slice(index), error)
        reject(error)
      }
    }
  }

  /** The deletion of an account, or another program, can cause a deadlock with the group. */
  async #ingestAgainAfterConflict(events: readonly GameEvent[]): Promise<EventOutcome[]> {
    try {
      return await this.#ingest(events)
    } catch (error) {
      if (isConflict(error)) return this.#ingest(events)
      throw error
    }
  }
}

function rejectAll(group: readonly WaitingEvent[], error: unknown): void {
  for (const { reject } of group) reject(error)
}

function isUnavailable(error: unknown): boolean {
  return error instanceof AppError && error.code === 'unavailable'
}
