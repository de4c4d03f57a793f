import { CODES, type Code } from '../../errors.ts'
import { type Failure, STATUS } from '../failure.ts'
import { STATUS_CODES } from '../format/status.ts'

/** The schema of the body of every error answer. */
export const ErrorSchema = {
  title: 'Error',
  type: 'object',
  required: ['message', 'code'],
  properties: {
    message: { type: 'string', description: 'A message for people, in French or English.' },
    code: { type: 'string', enum: [...CODES], description: 'An error code for programs. The list is complete.' },
    errors: {
      type: 'object',
      additionalProperties: { type: 'array', items: { type: 'string' } },
      description:
        'The error messages for each field, only in a 422. `body` stands for a request body that could not be read.',
    },
  },
}

/** The headers that a throttled route adds to every answer with a status below 500. */
export const THROTTLE_HEADERS = {
  'X-RateLimit-Limit': header('integer', 'The number of permitted requests per minute.', 5),
  'X-RateLimit-Remaining': header('integer', 'The number of requests that remain in this window.', 4),
  RateLimit: header(
    'string',
    'The requests that remain (`r`) and the seconds until the window ends (`t`), in the format of the IETF draft.',
    '"otp";r=4;t=37',
  ),
  'RateLimit-Policy': header(
    'string',
    'The limit (`q`) and its window in seconds (`w`), in the format of the IETF draft.',
    '"otp";q=5;w=60',
  ),
}

const RETRY_AFTER = { 'Retry-After': header('integer', 'Seconds to wait before the next request.', 37) }

const HEADERS: Record<number, object> = {
  401: {
    'WWW-Authenticate': header(
      'string',
      'Contains `error="invalid_token"` if the request had a token.',
      'Bearer error="invalid_token"',
    ),
  },
  429: {
    ...RETRY_AFTER,
    'X-RateLimit-Reset': header('integer', 'The end of the window, in Unix seconds.', 1768658400),
  },
  503: RETRY_AFTER,
}

const EXAMPLES: Record<Code, Omit<Failure, 'code'>> = {
  validation_failed: {
    message: 'Le champ email est obligatoire.',
    errors: { email: ['Le champ email est obligatoire.'] },
  },
  otp_invalid: {
    message: 'Ce code est incorrect ou a expiré. Demandez un nouveau code.',
    errors: { code: ['Ce code est incorrect ou a expiré. Demandez un nouveau code.'] },
  },
  otp_continue: {
    message: 'Saisissez maintenant les quatre chiffres suivants.',
    errors: { code: ['Saisissez maintenant les quatre chiffres suivants.'] },
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

/** The error response for each status in `STATUS`. Operations refer to a response by its name in this object. */
export const ERROR_RESPONSES = Object.fromEntries(
  [...new Set(Object.values(STATUS))].map(status => [responseName(status), describeStatus(status)]),
)

/** Returns the name of a response in the document, such as `NotFound` for 404. */
export function responseName(status: number): string {
  return STATUS_CODES[status]!.replaceAll(/\W/g, '')
}

function describeStatus(status: number) {
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
