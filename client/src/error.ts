import type { Error as ErrorAnswer } from './api.ts'

/**
 * An error code from the service, or one of two error codes from the client:
 * - `network`, with `status` 0: the service could not be reached, or it did not answer in time.
 * - `bad_answer`: the answer did not come from the service, but from another program. Examples are a proxy and the
 *   login page of a Wi-Fi network.
 */
export type ErrorCode = ErrorAnswer['code'] | 'network' | 'bad_answer'

type Details = { errors?: Record<string, string[]> | undefined; retryAfter?: number | undefined; cause?: unknown }

/** The error that this package throws if a request fails. Its `message` is meant for the user, in French or English. */
export class CourtsideError extends Error {
  /** The HTTP status, or 0 if no answer arrived. */
  readonly status: number
  readonly code: ErrorCode
  /** The messages for each invalid field. The object is empty if no field is invalid. */
  readonly errors: Record<string, string[]>
  /** The number of seconds to wait before the next attempt, or undefined if the answer did not state this number. */
  readonly retryAfter: number | undefined

  constructor(message: string, status: number, code: ErrorCode, { errors = {}, retryAfter, cause }: Details = {}) {
    super(message, { cause })
    this.name = 'CourtsideError'
    this.status = status
    this.code = code
    this.errors = errors
    this.retryAfter = retryAfter
  }
}

const TEXTS = {
  network: {
    fr: 'Le service est injoignable. Vérifiez votre connexion.',
    en: 'The service cannot be reached. Check your connection.',
  },
  bad_answer: {
    fr: 'Le service a répondu de façon inattendue.',
    en: 'The service gave an unexpected answer.',
  },
}

/**
 * Creates an error for a failure that the client itself detected.
 * @param language a BCP 47 tag. The message is in English for an English tag. For all other tags, and for undefined,
 * the message is in French.
 */
export function createClientError(
  code: 'network' | 'bad_answer',
  status: number,
  language: string | undefined,
  details?: Details,
): CourtsideError {
  return new CourtsideError(TEXTS[code][/^en\b/i.test(language ?? '') ? 'en' : 'fr'], status, code, details)
}
