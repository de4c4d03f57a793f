import type { Error as ErrorAnswer } from './api.ts'

/**
 * Why a call failed. Besides the service's own codes: `network` when it could not be reached or did not answer in time
 * (`status` 0), and `bad_answer` when what answered is not the service, such as a proxy or the page of a hotel's Wi-Fi.
 */
export type ErrorCode = ErrorAnswer['code'] | 'network' | 'bad_answer'

type Details = { errors?: Record<string, string[]> | undefined; retryAfter?: number | undefined; cause?: unknown }

/** The one error of this package. Its `message` is written for the person, in French or English. */
export class CourtsideError extends Error {
  /** The HTTP status; 0 when there was no answer. */
  readonly status: number
  readonly code: ErrorCode
  /** What is wrong, field by field; empty when no field is to blame. */
  readonly errors: Record<string, string[]>
  /** Seconds after which it may be tried again, when the service said so. */
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

/** An error of this side's own making. @param language a BCP 47 tag; anything but English is answered in French */
export function ownError(
  code: 'network' | 'bad_answer',
  status: number,
  language: string | undefined,
  details?: Details,
): CourtsideError {
  return new CourtsideError(TEXTS[code][/^en\b/i.test(language ?? '') ? 'en' : 'fr'], status, code, details)
}
