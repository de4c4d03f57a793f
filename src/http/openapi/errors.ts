import { CODES, type Code } from '../../errors.ts'
import { type Failure, STATUS } from '../failure.ts'
import { STATUS_CODES } from '../format/status.ts'

/** The one shape of every error. */
export const ErrorSchema = {
  title: 'Error',
  type: 'object',
  required: ['message', 'code'],
  properties: {
    message: { type: 'string', description: 'For a person to read, in French or English.' },
    code: { type: 'string', enum: [...CODES], description: 'For a program to read; the list is closed.' },
    errors: {
      type: 'object',
      additionalProperties: { type: 'array', items: { type: 'string' } },
      description: 'On a 422: what is wrong, field by field; `body` stands for a body that could not be read.',
    },
  },
}

/** What an answer of a throttled route carries, whatever its status. */
export const THROTTLE_HEADERS = {
  'X-RateLimit-Limit': header('integer', 'Requests a minute.', 5),
  'X-RateLimit-Remaining': header('integer', 'Requests left in this window.', 4),
  RateLimit: header(
    'string',
    'The same with the seconds until the window ends, as the IETF draft writes it.',
    '"otp";r=4;t=37',
  ),
  'RateLimit-Policy': header('string', 'The limit and its window in seconds.', '"otp";q=5;w=60'),
}

const RETRY_AFTER = { 'Retry-After': header('integer', 'Seconds to wait.', 37) }

const HEADERS: Record<number, object> = {
  401: {
    'WWW-Authenticate': header(
      'string',
      '`error="invalid_token"` if a token was sent.',
      'Bearer error="invalid_token"',
    ),
  },
  429: { ...RETRY_AFTER, 'X-RateLimit-Reset': header('integer', 'When the window ends, in Unix seconds.', 1768658400) },
  503: RETRY_AFTER,
}

const EXAMPLES: Record<Code, Omit<Failure, 'code'>> = {
  validation_failed: {
    message: 'Le champ email est obligatoire.',
    errors: { email: ['Le champ email est obligatoire.'] },
  },
  otp_invalid: {
    message: 'Ce code est incorrect ou a expiré.',
    errors: { code: ['Ce code est incorrect ou a expiré.'] },
  },
  event_mismatch: {
    message: 'Cet identifiant a déjà servi pour un autre contenu.',
    errors: { id: ['Cet identifiant a déjà servi pour un autre contenu.'] },
  },
  unauthenticated: { message: 'Unauthenticated.' },
  forbidden: { message: 'Cette notification ne vous appartient pas.' },
  not_found: { message: 'Introuvable.' },
  method_not_allowed: { message: 'Méthode non autorisée.' },
  payload_too_large: { message: 'Le corps dépasse 64 Kio.' },
  unsupported_media_type: { message: 'Le corps doit être envoyé en application/json.' },
  throttled: { message: 'Trop de tentatives. Réessayez dans un instant.' },
  wait: { message: 'Un code vient d’être envoyé. Patientez avant d’en demander un autre.' },
  unavailable: { message: 'Service momentanément indisponible. Réessayez dans un instant.' },
  server_error: { message: 'Server Error' },
}

/** The error response of every status that a handler can give, under the name that operations refer to it by. */
export const ERROR_RESPONSES = Object.fromEntries(
  [...new Set(Object.values(STATUS))].map(status => [nameOf(status), responseOf(status)]),
)

/** `404` → `NotFound` */
export function nameOf(status: number): string {
  return STATUS_CODES[status]!.replaceAll(/\W/g, '')
}

function responseOf(status: number) {
  const codes = CODES.filter(code => STATUS[code] === status)
  return {
    description: `${STATUS_CODES[status]}: ${codes.map(code => `\`${code}\``).join(', ')}`,
    ...(HEADERS[status] && { headers: HEADERS[status] }),
    content: {
      'application/json': {
        schema: { $ref: '#/components/schemas/Error' },
        examples: Object.fromEntries(codes.map(code => [code, { value: { ...EXAMPLES[code], code } }])),
      },
    },
  }
}

function header(type: 'integer' | 'string', description: string, example: unknown) {
  return { description, schema: { type }, example }
}
