import type { BatchResult, EventResult, RejectedEvent } from './api.ts'
import { computeBackoffMs, wait } from './backoff.ts'
import { splitIntoBatches } from './batches.ts'
import { isAheadOfService } from './clock.ts'
import { CourtsideError } from './error.ts'
import type { GameEvent, ReportedEvent } from './event.ts'
import { createTransport, type Request, sendForJson, type Transport } from './http.ts'

export type ReporterOptions = {
  /** The address of the service. */
  url: string
  /** One of the intake keys that the service accepts. */
  key: string
  /** The source of the events, such as `/games`. The source and the id together identify an event. */
  source: string
  /** The maximum number of attempts for each request. The default is 8. The eight attempts take about half a minute. */
  attempts?: number
  /** The language of the service's messages, `fr` or `en`. */
  language?: string
  fetch?: typeof fetch
}

type Result = EventResult | RejectedEvent

const PATH = '/internal/v1/events'

const BACKOFF = { baseMs: 500, maxMs: 30_000 }

/** Delivers each event at least once. The service applies each event only once. */
export class Reporter {
  readonly #transport: Transport
  readonly #key: string
  readonly #source: string
  readonly #attempts: number

  constructor({ url, key, source, attempts = 8, language, fetch }: ReporterOptions) {
    this.#transport = createTransport({ url, language, fetch })
    this.#key = key
    this.#source = source
    this.#attempts = attempts
  }

  /**
   * Adds an id and a time to an event if the event has none. `report` does the same. If you may report an event again
   * after a failure or a crash, call `name` first and store the event that `name` returns. The service then recognizes
   * the repetition.
   */
  name(event: GameEvent): ReportedEvent {
    const { id = crypto.randomUUID(), time = new Date() } = event
    const instant = typeof time === 'string' ? time : time.toISOString()
    return { ...event, specversion: '1.0', id, source: this.#source, time: instant } as ReportedEvent
  }

  /**
   * Reports one event, or several events in their order. After a network error, a 5xx, a 408 or a 429, the reporter
   * repeats the request. It does the same if the service refuses an event only because the clock of the service is
   * behind. If the last attempt fails in the same way, the error has the code `unavailable`. Then keep the event and
   * report it later.
   * @returns the result of the event. For an array, returns one result for each event. A `rejected` event does not
   * affect the rest of the array.
   * @throws CourtsideError if a single event is refused, or if events cannot be delivered. In the second case, the
   * service may have accepted some events of the array.
   */
  async report(event: GameEvent, options?: { signal?: AbortSignal }): Promise<EventResult>
  async report(events: GameEvent[], options?: { signal?: AbortSignal }): Promise<Result[]>
  async report(
    input: GameEvent | GameEvent[],
    { signal }: { signal?: AbortSignal } = {},
  ): Promise<EventResult | Result[]> {
    if (!Array.isArray(input)) {
      const event = JSON.stringify(this.name(input))
      return this.#repeat(async () => {
        try {
          return await this.#send<EventResult>(event, 'application/cloudevents+json', signal)
        } catch (error) {
          throw error instanceof CourtsideError && isAheadOfService(error, event) ? toUnavailable(error) : error
        }
      }, signal)
    }
    const results: Result[] = []
    for (const batch of splitIntoBatches(input.map(event => JSON.stringify(this.name(event))))) {
      results.push(...(await this.#repeat(() => this.#sendBatch(batch, signal), signal)))
    }
    return results
  }

  async #sendBatch(batch: string[], signal: AbortSignal | undefined): Promise<Result[]> {
    const { results } = await this.#send<BatchResult>(`[${batch}]`, 'application/cloudevents-batch+json', signal)
    const ahead = results.find(
      (result, index) => result.status === 'rejected' && isAheadOfService(result, batch[index] ?? ''),
    )
    if (ahead) throw toUnavailable(ahead as RejectedEvent)
    return results
  }

  async #send<T>(body: string, contentType: string, signal: AbortSignal | undefined): Promise<T> {
    const request: Request = { method: 'POST', path: PATH, token: this.#key, body, contentType, signal }
    return (await sendForJson<T>(this.#transport, request)).body
  }

  /** Calls `attempt` until it succeeds, fails permanently, or has failed `#attempts` times. */
  async #repeat<T>(attempt: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    for (let failures = 1; ; failures += 1) {
      try {
        return await attempt()
      } catch (error) {
        if (!isTransient(error) || failures >= this.#attempts || signal?.aborted) throw error
        await wait(computeBackoffMs(failures, BACKOFF, error.retryAfter), signal)
        if (signal?.aborted) throw error
      }
    }
  }
}

/** Returns the error for an event that the service will accept later, because the clock of the service is behind. */
function toUnavailable({ message, errors }: Pick<RejectedEvent, 'message' | 'errors'>): CourtsideError {
  return new CourtsideError(message, 422, 'unavailable', { errors })
}

/**
 * Returns whether another attempt may succeed. A 2xx answer that is not JSON comes from a proxy, not from the service.
 * The next attempt may reach the service.
 */
function isTransient(error: unknown): error is CourtsideError {
  if (!(error instanceof CourtsideError)) return false
  const { status, code } = error
  if (code === 'unavailable') return true
  return status === 0 || status === 408 || status === 429 || status >= 500 || (code === 'bad_answer' && status < 300)
}
