import { isConflict, isLockTimeout } from '../db/errors.ts'
import { AppError, unavailable } from '../errors.ts'
import type { EventOutcome } from './intake.ts'
import type { GameEvent } from './parse-event.ts'

const MAX_GROUP_SIZE = 100

/** An event waits for its group as long as a transaction waits for a free connection (`connectionTimeoutMillis`). */
const MAX_WAIT_MS = 5_000

type Ingest = (events: readonly GameEvent[]) => Promise<EventOutcome[]>

type ReportedEvent = {
  event: GameEvent
  resolve: (outcome: EventOutcome) => void
  reject: (error: unknown) => void
}

/**
 * Ingests events that producers report one by one. Each group of events is one transaction, so its events share one
 * flush to the disk. One group runs at a time. The events that arrive meanwhile wait, and form the next groups in the
 * order of their arrival. If no group runs, an event does not wait.
 *
 * Another program can hold the lock on a game for long. If a group cannot get a lock in time, its events continue in a
 * second queue, one by one. Until an event of such a game gets its locks, all events of the game use the second queue.
 * So the groups go on without these games.
 */
export class EventGroups {
  readonly #ingest: Ingest
  readonly #groups = new Queue(MAX_GROUP_SIZE, group => this.#ingestGroup(group))
  readonly #singles = new Queue(1, ([single]) => this.#ingestAlone(single!))
  /** The ids of the games whose events use the second queue. */
  readonly #lockedGames = new Set<number>()

  /** @param ingest ingests events in one transaction, and returns their outcomes in the same order */
  constructor(ingest: Ingest) {
    this.#ingest = ingest
  }

  /** The number of events that wait. */
  get waiting(): number {
    return this.#groups.waiting.length + this.#singles.waiting.length
  }

  /** @throws AppError `unavailable` if the event has waited 5 s, if a lock is not free, or if the database is lost */
  add(event: GameEvent): Promise<EventOutcome> {
    const { promise, resolve, reject } = Promise.withResolvers<EventOutcome>()
    const queue = this.#lockedGames.has(event.gameId) ? this.#singles : this.#groups
    queue.push({ event, resolve, reject })
    return promise
  }

  /** Waits until no event waits and none is being ingested. */
  async drain(): Promise<void> {
    // A group may still move its events to the second queue.
    await this.#groups.drain()
    await this.#singles.drain()
  }

  async #ingestGroup(group: readonly ReportedEvent[]): Promise<void> {
    try {
      const outcomes = await this.#ingestAgainAfterConflict(group.map(({ event }) => event))
      group.forEach(({ resolve }, index) => {
        resolve(outcomes[index]!)
      })
    } catch (error) {
      if (isLockTimeout(error)) this.#moveToSingles(group)
      else if (group.length === 1 || isUnavailable(error)) rejectAll(group, error)
      else await this.#ingestOneByOne(group)
    }
  }

  /** Ingests the events of a failed group in their order, so the event at fault fails alone. */
  async #ingestOneByOne(group: readonly ReportedEvent[]): Promise<void> {
    for (const [index, { event, resolve, reject }] of group.entries()) {
      try {
        const [outcome] = await this.#ingestAgainAfterConflict([event])
        resolve(outcome!)
      } catch (error) {
        if (isLockTimeout(error)) return this.#moveToSingles(group.slice(index))
        if (isUnavailable(error)) return rejectAll(group.slice(index), error)
        reject(error)
      }
    }
  }

  #moveToSingles(group: readonly ReportedEvent[]): void {
    for (const reported of group) {
      this.#lockedGames.add(reported.event.gameId)
      this.#singles.push(reported)
    }
  }

  async #ingestAlone({ event, resolve, reject }: ReportedEvent): Promise<void> {
    let isLocked = false
    try {
      const [outcome] = await this.#ingestAgainAfterConflict([event])
      resolve(outcome!)
    } catch (error) {
      isLocked = isLockTimeout(error)
      reject(error)
    }
    // Later events of the game must not overtake those that wait here.
    const isLast = this.#singles.waiting.every(waiting => waiting.event.gameId !== event.gameId)
    if (!isLocked && isLast) this.#lockedGames.delete(event.gameId)
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

/** A queue of events. It takes the next events as soon as the previous ones are done. */
class Queue {
  readonly waiting: (ReportedEvent & { timeout: NodeJS.Timeout })[] = []
  readonly #maxGroupSize: number
  readonly #ingest: (group: readonly ReportedEvent[]) => Promise<void>
  #running: Promise<void> | undefined

  constructor(maxGroupSize: number, ingest: (group: readonly ReportedEvent[]) => Promise<void>) {
    this.#maxGroupSize = maxGroupSize
    this.#ingest = ingest
  }

  push(reported: ReportedEvent): void {
    // All events have the same limit, so the first event in the queue is the event that has waited longest.
    const timeout = setTimeout(() => {
      this.waiting.shift()
      reported.reject(unavailable(new Error('the event has waited too long for the events before it')))
    }, MAX_WAIT_MS)
    this.waiting.push({ ...reported, timeout })
    this.#running ??= this.#run()
  }

  async drain(): Promise<void> {
    await this.#running
  }

  async #run(): Promise<void> {
    while (this.waiting.length > 0) {
      const group = this.waiting.splice(0, this.#maxGroupSize)
      for (const { timeout } of group) clearTimeout(timeout)
      await this.#ingest(group)
    }
    this.#running = undefined
  }
}

function rejectAll(group: readonly ReportedEvent[], error: unknown): void {
  for (const { reject } of group) reject(error)
}

function isUnavailable(error: unknown): boolean {
  return error instanceof AppError && error.code === 'unavailable'
}
