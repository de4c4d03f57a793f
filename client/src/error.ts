import type { Error as ErrorAnswer } from './api.ts'

/**
 * The reason for a failure. The client adds two codes to those of the service. `network` (`status` 0): the service
 * could not be reached or did not answer in time. `bad_answer`: the answer came from something else, such as a proxy or
 * the login page of a Wi-Fi network.
 */
export type ErrorCode = ErrorAnswer['code'] | 'network' | 'bad_answer'

type Details = { errors?: Record<string, string[]> | undefined; retryAfter?: number | undefined; cause?: unknown }

/** The only error class of this package. Its `message` is written for the user, in French or English. */
export class CourtsideError extends Error {
  /** The HTTP status, or 0 without an answer. */
  readonly status: number
  readonly code: ErrorCode
  /** Messages by field, empty if no field is wrong. */
  readonly errors: Record<string, string[]>
  /** Seconds until the next attempt, if the service stated them. */
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
 * Creates an error that the service did not send.
 * @param language a BCP 47 tag; the text is English for an English tag and French for any other
 */
export function createClientError(
  code: 'network' | 'bad_answer',
  status: number,
  language: string | undefined,
  details?: Details,
): CourtsideError {
  return new CourtsideError(TEXTS[code][/^en\b/i.test(language ?? '') ? 'en' : 'fr'], status, code, details)
}
