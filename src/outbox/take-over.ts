/** For this time, other workers must have been able to renew their leases before this worker takes one over. */
const OBSERVE_MS = 10_000

/** A fault that lasts less than this lets no lease lapse, because workers renew a lease 7 s before its end. */
const MAX_GAP_MS = 4_000

/**
 * Decides which lapsed leases a worker may take over. While the database or its connections fail, the workers that live
 * cannot renew their leases. So a worker may take a lease over only if it lapsed although its owner could renew it for
 * 10 s: in this time, the worker ran a statement each second that needs the same locks as a renewal.
 *
 * The result is a time by the clock of the database, at which such a statement ended. So it does not matter when a claim
 * reaches the server. A lease that lapsed before this time and was not renewed until the claim belongs to a dead worker.
 */
export class TakeOver {
  #since: Date | undefined
  #last: Date | undefined

  /** Returns the time before which a lease must have ended. Returns undefined while the worker takes nothing over. */
  get lapsedBefore(): Date | undefined {
    if (!this.#since || !this.#last) return undefined
    return this.#last.getTime() - this.#since.getTime() >= OBSERVE_MS ? this.#last : undefined
  }

  /** @param endedAt the time at which the statement ended, by the clock of the database */
  succeed(endedAt: Date): void {
    const gapMs = this.#last ? endedAt.getTime() - this.#last.getTime() : 0
    if (!this.#since || gapMs < 0 || gapMs > MAX_GAP_MS) this.#since = endedAt
    this.#last = endedAt
  }

  fail(): void {
    this.#since = undefined
  }
}
