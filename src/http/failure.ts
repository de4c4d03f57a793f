import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { AppError, type Code, notFound, same } from '../errors.ts'
import { type Language, preferredLanguage, type Text } from '../language.ts'
import { STATUS_CODES } from './format/status.ts'

/** The HTTP status of each error code. No other place maps codes to statuses. */
export const STATUS: Record<Code, number> = {
  validation_failed: 422,
  otp_invalid: 422,
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  payload_too_large: 413,
  unsupported_media_type: 415,
  event_mismatch: 422,
  otp_continue: 422,
  throttled: 429,
  wait: 429,
  unavailable: 503,
  server_error: 500,
}

/** The body of every error answer. */
export type Failure = { message: string; code: Code; errors?: Record<string, string[]> }

/**
 * Sends an error answer. The message of a 500 is always "Server Error". Only the log contains the cause of a 500.
 * @returns the error code of the answer
 */
export function sendFailure(thrown: unknown, request: FastifyRequest, reply: FastifyReply): Code {
  const error = toAppError(thrown)
  if (error.code === 'server_error') request.log.error({ err: thrown }, 'request failed')
  if (error.code === 'unavailable') logUnavailable(error.cause, request)
  reply
    .code(STATUS[error.code])
    .headers(error.headers)
    .send(toFailure(error, preferredLanguage(request.headers['accept-language'])))
  return error.code
}

/** Logs a reason in words as it is. Every error that is the cause of a 503 comes from the database. */
function logUnavailable(cause: unknown, { log }: FastifyRequest): void {
  if (typeof cause === 'string') log.warn(cause)
  else if (cause) log.warn({ err: cause }, 'database unavailable')
}

/** Returns the body of the answer for an error. */
export function toFailure(error: AppError, language: Language): Failure {
  if (!error.fields) return { message: error.text[language], code: error.code }
  const errors = Object.fromEntries(
    Object.entries(error.fields).map(([field, texts]) => [field, texts.map(text => text[language])]),
  )
  const others = Object.values(errors).flat().length - 1
  const message = error.text[language] + (others > 0 ? ` ${andMore(others)[language]}` : '')
  return { message, code: error.code, errors }
}

/** The specification requires the exact words "(et N erreur(s) de plus)". */
function andMore(count: number): Text {
  return { fr: `(et ${count} erreur(s) de plus)`, en: `(and ${count} more error(s))` }
}

/**
 * Converts a thrown value to an AppError. Returns an AppError unchanged. Returns a 4xx for an error of Fastify that is
 * the client's fault. Returns a 500 for every other value.
 */
function toAppError(thrown: unknown): AppError {
  if (thrown instanceof AppError) return thrown
  const { code, statusCode } = thrown as Partial<FastifyError>
  if (code?.startsWith('FST_ERR_') && statusCode && statusCode >= 400 && statusCode < 500) {
    return toClientError(code, statusCode)
  }
  return new AppError('server_error', same('Server Error'), { cause: thrown })
}

function toClientError(code: string, status: number): AppError {
  // Fastify cannot decode the path, or an identifier in the path is too long. We treat such a path as an unknown path.
  if (status === 404 || code === 'FST_ERR_BAD_URL' || code === 'FST_ERR_MAX_PARAM_LENGTH') return notFound()
  const known = Object.entries(STATUS).find(([, value]) => value === status)
  return new AppError(
    (known?.[0] as Code | undefined) ?? 'validation_failed',
    same(STATUS_CODES[status] ?? 'Bad Request'),
  )
}
