import type { Text } from './language.ts'

/** Every `code` an error body can carry. The list is closed: a new one is a change of the contract. */
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

/** What was wrong, field by field; `body` stands for a body that could not be read at all. */
export type Fields = Record<string, Text[]>

type Options = {
  fields?: Fields
  headers?: Record<string, string>
  /** For the log only; it never reaches the caller. */
  cause?: unknown
}

/** A refusal the caller may read. Anything else that is thrown is a fault of ours: 500, its cause in the log only. */
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

/** A 422 about named fields; its message is the first text. */
export function invalid(fields: Fields, code: Code = 'validation_failed'): AppError {
  const first = Object.values(fields)[0]?.[0]
  if (!first) throw new Error('an invalid() needs at least one text')
  return new AppError(code, first, { fields })
}

/** One and the same 401, whatever was wrong with the token. The sentence is a literal of the specification. */
export function unauthenticated(tokenSent: boolean): AppError {
  return new AppError('unauthenticated', same('Unauthenticated.'), {
    headers: { 'www-authenticate': tokenSent ? 'Bearer error="invalid_token"' : 'Bearer' },
  })
}

/** A valid token that may not do this. */
export function forbidden(text: Text): AppError {
  return new AppError('forbidden', text)
}

/** A path or identifier that is unknown, or can be no identifier at all. */
export function notFound(): AppError {
  return new AppError('not_found', { fr: 'Introuvable.', en: 'Not found.' })
}

/** The database cannot be reached just now. */
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

/** A text that is the same in every language. */
export function same(text: string): Text {
  return { fr: text, en: text }
}
