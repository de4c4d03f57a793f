import type { Text } from './language.ts'

/** All values of `code` in error answers. Clients rely on this list, so a new error code changes the API. */
export const CODES = [
  'validation_failed',
  'otp_invalid',
  'unauthenticated',
  'forbidden',
  'not_found',
  'method_not_allowed',
  'payload_too_large',
  'unsupported_media_type',
  'event_mismatch',
  'otp_continue',
  'throttled',
  'wait',
  'unavailable',
  'server_error',
] as const

export type Code = (typeof CODES)[number]

/**
 * The error messages for each field of the input. The key `body` stands for a request body that could not be parsed at
 * all.
 */
export type Fields = Record<string, Text[]>

type Options = {
  fields?: Fields
  headers?: Record<string, string>
  /** The original error, or the reason in words, for the log. The answer never contains it. */
  cause?: unknown
}

/**
 * An error whose message is sent to the caller. The service answers any other error with a 500 and describes it only in
 * the log.
 */
export class AppError extends Error {
  readonly code: Code
  readonly text: Text
  readonly fields: Fields | undefined
  readonly headers: Record<string, string>

  constructor(code: Code, text: Text, options: Options = {}) {
    super(text.en, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'AppError'
    this.code = code
    this.text = text
    this.fields = options.fields
    this.headers = options.headers ?? {}
  }
}

/** Returns a 422 that names the invalid fields. The message of the error is the first message in `fields`. */
export function invalid(fields: Fields, code: Code = 'validation_failed'): AppError {
  const first = Object.values(fields)[0]?.[0]
  if (!first) throw new Error('invalid() needs at least one message')
  return new AppError(code, first, { fields })
}

/**
 * Returns the 401 for a request without a valid token. The body is the same for every fault of a token. The
 * specification prescribes the exact message.
 * @param tokenSent whether the request had a token, even a malformed one
 */
export function unauthenticated(tokenSent: boolean): AppError {
  return new AppError('unauthenticated', same('Unauthenticated.'), {
    headers: { 'www-authenticate': tokenSent ? 'Bearer error="invalid_token"' : 'Bearer' },
  })
}

/** Returns the 403 for a caller whose token is valid but does not permit the operation. */
export function forbidden(text: Text): AppError {
  return new AppError('forbidden', text)
}

/** Returns the 404 for an unknown path, an unknown identifier, or a value that cannot be an identifier. */
export function notFound(): AppError {
  return new AppError('not_found', { fr: 'Introuvable.', en: 'Not found.' })
}

/**
 * Returns the 503 for a request that needs the database while the database cannot be used.
 * @param cause the error of the database, or the reason in words, for the log. If it is undefined, the 503 is not
 *   logged
 * @param retryAfter the seconds that the client should wait
 */
export function unavailable(cause: unknown, retryAfter = 5): AppError {
  return new AppError(
    'unavailable',
    {
      fr: 'Service momentanément indisponible. Réessayez dans un instant.',
      en: 'Service unavailable. Try again soon.',
    },
    { cause, headers: { 'retry-after': String(retryAfter) } },
  )
}

/** Returns a `Text` with the same words in every language. */
export function same(text: string): Text {
  return { fr: text, en: text }
}
