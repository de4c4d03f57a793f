import type { RouteOptions } from 'fastify'
import { unavailable } from '../errors.ts'

/**
 * How many requests of a kind may use the database at the same time. Further requests would only wait behind each
 * other's statements. Reads do not wait for the disk, so they have more slots. With 64 slots, a process answered fewer
 * reads under overload.
 */
const SLOTS = { reads: 256, strangers: 64, writes: 64 }

const MAX_WAIT_MS = 400

/**
 * A refused client waits for 1, 2 or 3 s, by chance. After a burst, the slots are free again within a second, so a long
 * wait would leave them idle. If all clients waited for the same time, they would come back as the same burst.
 */
const MAX_RETRY_SECONDS = 3

type Waiting = { enter: () => void; timeout: NodeJS.Timeout }

/**
 * Limits how many requests run at the same time. Further requests wait for a slot in the order of their arrival, at
 * most 0.4 s. So under overload, a process answers as many requests as before, and refuses the other requests soon.
 */
export class Slots {
  readonly #waiting: Waiting[] = []
  #free: number

  constructor(count: number) {
    this.#free = count
  }

  /** The number of requests that wait for a slot. */
  get waiting(): number {
    return this.#waiting.length
  }

  /**
   * Runs `work` as soon as a slot is free.
   * @throws AppError `unavailable` if no slot becomes free in time
   */
  async run<T>(work: () => T | Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1
    else await this.#wait()
    try {
      return await work()
    } finally {
      this.#leave()
    }
  }

  #wait(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    // All requests have the same limit, so the first request in the queue has waited longest.
    const timeout = setTimeout(() => {
      this.#waiting.shift()
      // Without a cause, the 503 is not logged. Under overload, there would be thousands of lines.
      reject(unavailable(undefined, 1 + Math.floor(Math.random() * MAX_RETRY_SECONDS)))
    }, MAX_WAIT_MS)
    this.#waiting.push({ enter: resolve, timeout })
    return promise
  }

  /** Hands the slot over to the request that has waited longest. */
  #leave(): void {
    const next = this.#waiting.shift()
    if (next) {
      clearTimeout(next.timeout)
      next.enter()
    } else this.#free += 1
  }
}

/** The slots of requests that only read, of strangers' guesses at codes, and of all other requests. */
export type RequestSlots = Record<keyof typeof SLOTS, Slots>

/** Creates the slots of a process. */
export function createSlots(): RequestSlots {
  const { reads, strangers, writes } = SLOTS
  return { reads: new Slots(reads), strangers: new Slots(strangers), writes: new Slots(writes) }
}

/**
 * Makes the handler of an API route, or of another route that uses the database, wait for a slot. The handler runs
 * after the body was read and checked, and ends before the answer is sent, so slow clients take no slots. A handler
 * that waits for its slot itself is not changed.
 */
export function limitHandler(route: RouteOptions, { reads, writes }: RequestSlots): void {
  const needsSlot = route.url.startsWith('/api/v1/') || route.config?.needsSlot
  if (!needsSlot || route.config?.waitsForSlot) return
  const slots = route.method === 'GET' || route.method === 'HEAD' ? reads : writes
  const { handler } = route
  route.handler = function (request, reply) {
    return slots.run(() => handler.call(this, request, reply))
  }
}
