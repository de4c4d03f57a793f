/**
 * The places of a channel: at most this number of deliveries run at the same time. If no place is free, the waiting
 * delivery of the lowest class gets the next place.
 *
 * In some channels, each claimed delivery waits for a random moment before it takes a place. So a worker must claim
 * more rows than it has places. Otherwise places would stay free. `maxClaimed` is the maximum number of claimed rows.
 * It grows while deliveries find a free place, and shrinks while they must wait. So behind a slow mail server, a worker
 * claims only few rows, and the order of the claims stays the order of the mails.
 */
export class Places {
  #total: number
  #taken = 0
  readonly #maxAhead: number
  #maxClaimed: number
  #waiting: { class: number; start: () => void }[] = []

  /**
   * @param hasStartDelay whether a delivery waits for a random moment before it takes a place. Without this wait, a
   *   worker claims at most twice as many rows as it has places, so few rows wait behind a silent push service
   */
  constructor(total: number, hasStartDelay: boolean) {
    this.#total = total
    this.#maxAhead = hasStartDelay ? MAX_AHEAD : total
    this.#maxClaimed = total * 2
  }

  get maxClaimed(): number {
    return Math.floor(this.#maxClaimed)
  }

  async take(deliveryClass: number): Promise<void> {
    if (this.#taken < this.#total) {
      this.#taken += 1
      this.#maxClaimed = Math.min(this.#maxClaimed + 1, this.#total + this.#maxAhead)
      return
    }
    this.#maxClaimed = Math.max(this.#maxClaimed - 0.5, this.#total)
    await new Promise<void>(start => {
      this.#waiting.push({ class: deliveryClass, start })
      this.#waiting.sort((one, other) => one.class - other.class)
    })
  }

  /** Starts all waiting and later deliveries, for a worker that stops and gives them back. */
  open(): void {
    this.#total = Number.POSITIVE_INFINITY
    this.#taken += this.#waiting.length
    for (const { start } of this.#waiting.splice(0)) start()
  }

  release(): void {
    const next = this.#waiting.shift()
    if (next) next.start()
    else this.#taken -= 1
  }
}

/** The maximum number of claimed rows beyond the number of places. */
const MAX_AHEAD = 128
