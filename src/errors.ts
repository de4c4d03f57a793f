import type { Text } from './language.ts'

/** Every `code` of an error body. The list is closed: a new code is a change of the contract. */
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
  'throttled',
  'wait',
  'unavailable',
  'server_error',
] as const

export type Code = (typeof CODES)[number]

/** The faults of an input by field. `body` stands for a body that could not be read at all. */
export type Fields = Record<string, Text[]>

type Options = {
  fields?: Fields
  headers?: Record<string, string>
  /** For the log only. The caller never sees it. */
  cause?: unknown
}

/** An error whose text the caller may read. Every other error is a 500, with its cause in the log only. */
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

/** Returns a 422 that names the fields. Its message is the first text. */
export function invalid(fields: Fields, code: Code = 'validation_failed'): AppError {
  const first = Object.values(fields)[0]?.[0]
  if (!first) throw new Error('invalid() needs at least one text')
  return new AppError(code, first, { fields })
}

/** Returns the 401, the same for every fault of a token. The sentence is a literal of the specification. */
export function unauthenticated(tokenSent: boolean): AppError {
  return new AppError('unauthenticated', same('Unauthenticated.'), {
    headers: { 'www-authenticate': tokenSent ? 'Bearer error="invalid_token"' : 'Bearer' },
  })
}

/** Returns the 403 for a caller whose valid token does not permit the operation. */
export function forbidden(text: Text): AppError {
  return new AppError('forbidden', text)
}

/** Returns the 404 for an unknown path or identifier, and for a text that cannot be an identifier. */
export function notFound(): AppError {
  return new AppError('not_found', { fr: 'Introuvable.', en: 'Not found.' })
}

/** Returns the 503 for a database that cannot be reached. */
export function unavailable(cause: unknown): AppError {
  return new AppError(
    'unavailable',
    {
      fr: 'Service momentanément indisponible. Réessayez dans un instant.',
      en: 'Service unavailable. Try again soon.',
    },
    { cause, headers: { 'retry-after': '5' } },
  )
}

/** Returns a text that is the same in every language. */
export function same(text: string): Text {
  return { fr: text, en: text }
}
