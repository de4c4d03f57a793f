/** Before this worker takes a lease over, other workers must have been able to renew their leases for this time. */
const OBSERVE_MS = 10_000

/** The longest fault in which no lease lapses. Workers renew a lease 7 s before its end. */
const MAX_GAP_MS = 4_000

/**
 * Decides which lapsed leases a worker may take over. While the database or its connections fail, running workers
 * cannot renew their leases. So this worker may take over only leases that lapsed although their workers could renew
 * them for 10 s. During these 10 s, this worker ran a statement each second that needs the same locks as a renewal.
 *
 * The result is the time at which the latest of these statements ended, by the clock of the database. So a claim may
 * reach the server late. A lease that lapsed before this time and was not renewed until the claim belongs to a dead
 * worker.
 */
export class TakeOver {
  #since: Date | undefined
  #last: Date | undefined

  /** Returns the time before which a lease must have ended. Returns undefined while the worker takes nothing over. */
  get lapsedBefore(): Date | undefined {
    if (!this.#since || !this.#last) return undefined
    return this.#last.getTime() - this.#since.getTime() >= OBSERVE_MS ? this.#last : undefined
  }

  /**
   * Records that the statement succeeded.
   * @param endedAt the time at which the statement ended, by the clock of the database
   */
  recordSuccess(endedAt: Date): void {
    const gapMs = this.#last ? endedAt.getTime() - this.#last.getTime() : 0
    if (!this.#since || gapMs < 0 || gapMs > MAX_GAP_MS) this.#since = endedAt
    this.#last = endedAt
  }

  /** Records that the statement failed. */
  recordFailure(): void {
    this.#since = undefined
  }
}
