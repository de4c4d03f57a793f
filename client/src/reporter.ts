import type { BatchResult, EventResult, RejectedEvent } from './api.ts'
import { backOff, wait } from './backoff.ts'
import { batchesOf } from './batches.ts'
import { CourtsideError } from './error.ts'
import type { Fact, ReportedFact } from './fact.ts'
import { type Request, sendForJson, type Wire } from './http.ts'

export type ReporterOptions = {
  /** Where the service is. */
  url: string
  /** One of its intake keys. */
  key: string
  /** Who reports, such as `/games`: part of each fact's name. */
  source: string
  /** How often one is sent before it is given up; by default 8, about half a minute. */
  attempts?: number
  /** The language of the service's remarks, `fr` or `en`. */
  language?: string
  fetch?: typeof fetch
}

type Result = EventResult | RejectedEvent

const PATH = '/internal/v1/events'

const PAUSES = { baseMs: 500, mostMs: 30_000 }

/** Reports facts to the service: at least once, while the service sees to it that each has one effect. */
export class Reporter {
  readonly #wire: Wire
  readonly #key: string
  readonly #source: string
  readonly #attempts: number

  constructor({ url, key, source, attempts = 8, language, fetch: given }: ReporterOptions) {
    const ask: typeof fetch = given ?? ((input, init) => fetch(input, init))
    this.#wire = { url: url.replace(/\/+$/, ''), language, fetch: ask }
    this.#key = key
    this.#source = source
    this.#attempts = attempts
  }

  /**
   * Names and dates a fact that isn't yet. `report` does it by itself; whoever wants to try again later, after it has
   * given up or after a crash, does it first and keeps the outcome: only then is the second try a repeat.
   */
  name(fact: Fact): ReportedFact {
    const { id = crypto.randomUUID(), time = new Date() } = fact
    const instant = typeof time === 'string' ? time : time.toISOString()
    return { ...fact, specversion: '1.0', id, source: this.#source, time: instant } as ReportedFact
  }

  /**
   * Reports one fact or several, in their order, and repeats what the network, the service's faults or its throttle
   * have kept from arriving.
   * @returns of one its result; of several one each, a refused one being `rejected` while the others count
   * @throws CourtsideError of one that is refused; of any that couldn't be delivered. Of several those before it may
   * have been
   */
  async report(fact: Fact, options?: { signal?: AbortSignal }): Promise<EventResult>
  async report(facts: Fact[], options?: { signal?: AbortSignal }): Promise<Result[]>
  async report(given: Fact | Fact[], { signal }: { signal?: AbortSignal } = {}): Promise<EventResult | Result[]> {
    if (!Array.isArray(given)) {
      const body = JSON.stringify(this.name(given))
      return this.#deliver<EventResult>(body, 'application/cloudevents+json', signal)
    }
    const results: Result[] = []
    for (const batch of batchesOf(given.map(fact => JSON.stringify(this.name(fact))))) {
      const answer = await this.#deliver<BatchResult>(`[${batch}]`, 'application/cloudevents-batch+json', signal)
      results.push(...answer.results)
    }
    return results
  }

  async #deliver<T>(body: string, contentType: string, signal: AbortSignal | undefined): Promise<T> {
    const request: Request = { method: 'POST', path: PATH, token: this.#key, body, contentType, signal }
    for (let failures = 1; ; failures += 1) {
      try {
        return await sendForJson<T>(this.#wire, request)
      } catch (error) {
        if (!isPassing(error) || failures >= this.#attempts || signal?.aborted) throw error
        await wait(backOff(failures, PAUSES, error.retryAfter), signal)
        if (signal?.aborted) throw error
      }
    }
  }
}

/** Whether it may go well another time. A 2xx that isn't the service's came from something in between. */
function isPassing(error: unknown): error is CourtsideError {
  if (!(error instanceof CourtsideError)) return false
  const { status, code } = error
  return status === 0 || status === 408 || status === 429 || status >= 500 || (code === 'bad_answer' && status < 300)
}
