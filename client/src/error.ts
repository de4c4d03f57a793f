import type { Error as ErrorAnswer } from './api.ts'

/**
 * An error code from the client:
 * - `network`, with `status` 0: the service could not be reached, or it did not answer in time.
 * - `bad_answer`: the answer did not come from the service, but from another program. Examples are a proxy and the
 *   login page of a Wi-Fi network.
 * - `push_failed`, with `status` 0: the browser could not switch on pushes. `cause` is the browser's error.
 */
export type ClientErrorCode = 'network' | 'bad_answer' | 'push_failed'

/** An error code from the service or from the client. */
export type ErrorCode = ErrorAnswer['code'] | ClientErrorCode

type Details = { errors?: Record<string, string[]> | undefined; retryAfter?: number | undefined; cause?: unknown }

/** The error that this package throws if a request fails. Its `message` is meant for the user, in French or English. */
export class CourtsideError extends Error {
  /** The HTTP status, or 0 if no answer arrived. */
  // `declare` makes no field, which saves some bytes. The constructor sets all of them.
  declare readonly status: number
  declare readonly code: ErrorCode
  /** The messages for each invalid field. The object is empty if no field is invalid. */
  declare readonly errors: Record<string, string[]>
  /** The number of seconds to wait before the next attempt, or undefined if the answer did not state this number. */
  declare readonly retryAfter: number | undefined

  constructor(message: string, status: number, code: ErrorCode, { errors = {}, retryAfter, cause }: Details = {}) {
    super(message, { cause })
    this.name = 'CourtsideError'
    this.status = status
    this.code = code
    this.errors = errors
    this.retryAfter = retryAfter
  }
}

const TEXTS: Record<ClientErrorCode, { fr: string; en: string }> = {
  network: {
    fr: 'Le service est injoignable. Vérifiez votre connexion.',
    en: 'The service cannot be reached. Check your connection.',
  },
  bad_answer: {
    fr: 'Le service a répondu de façon inattendue.',
    en: 'The service gave an unexpected answer.',
  },
  push_failed: {
    fr: 'Le navigateur refuse les notifications.',
    en: 'The browser refuses notifications.',
  },
}

/**
 * Creates an error for a failure that the client itself detected.
 * @param language a BCP 47 tag. The message is in English for an English tag. For all other tags, and for undefined,
 * the message is in French.
 */
export function createClientError(
  code: ClientErrorCode,
  status: number,
  language: string | undefined,
  details?: Details,
): CourtsideError {
  return new CourtsideError(TEXTS[code][/^en\b/i.test(language ?? '') ? 'en' : 'fr'], status, code, details)
}
