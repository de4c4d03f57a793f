import { isFirstName, isName } from '../accounts/names.ts'
import { PLAIN_LINE } from '../http/format/plain-text.ts'
import { Message } from '../http/message.ts'
import { Type } from '../http/type.ts'
import { SEND_COOLDOWN_SECONDS } from './code-limits.ts'

export const INVALID_EMAIL = { fr: 'L’adresse e-mail n’est pas valide.', en: 'The e-mail address is not valid.' }

const Email = Type.String({
  maxLength: 254,
  examples: ['marie.durand@example.com'],
  rule: INVALID_EMAIL,
  published: { format: 'email', minLength: 5 },
})

const NAME = { minLength: 1, maxLength: 100, pattern: PLAIN_LINE }

const FirstName = Type.String({
  ...NAME,
  description: 'A single line of text with at least one letter. It must not contain `://`, `www.` or `@`.',
  examples: ['Marie'],
  check: isFirstName,
  rule: {
    fr:
      'Le champ first_name doit tenir sur une ligne, en 1 à 100 caractères, dont au moins une lettre, ' +
      'sans caractère invisible, sans « @ » et sans adresse web.',
    en:
      'The first_name field must be one line of 1 to 100 characters with at least one letter, ' +
      'without invisible characters, "@" or web addresses.',
  },
})

const LastName = Type.String({
  ...NAME,
  description: 'A single line of text. It must not contain `://`, `www.` or `@`.',
  examples: ['Durand'],
  check: isName,
  rule: {
    fr:
      'Le champ last_name doit tenir sur une ligne, en 1 à 100 caractères, ' +
      'sans caractère invisible, sans « @ » et sans adresse web.',
    en:
      'The last_name field must be one line of 1 to 100 characters, ' +
      'without invisible characters, "@" or web addresses.',
  },
})

export const CredentialsRequest = Type.Object(
  {
    email: Email,
    first_name: Type.Optional(FirstName),
    last_name: Type.Optional(LastName),
    accept_cgu: Type.Optional(
      Type.Boolean({
        description: 'Must be `true`, which means that the person accepts the terms.',
        examples: [true],
        published: { const: true },
      }),
    ),
  },
  {
    title: 'CredentialsRequest',
    description:
      'A request with only `email` is a sign-in. A request with any other field is a sign-up and requires all fields.',
    published: {
      dependentRequired: {
        first_name: ['last_name', 'accept_cgu'],
        last_name: ['first_name', 'accept_cgu'],
        accept_cgu: ['first_name', 'last_name'],
      },
    },
  },
)

/** The answer of the route `request-otp`. */
export const CodeSent = {
  ...Message,
  headers: {
    'Retry-After': Type.Integer({
      description: 'Seconds until the caller may request the next code.',
      examples: [SEND_COOLDOWN_SECONDS],
    }),
  },
}

export const Code = Type.String({
  verbatim: true,
  pattern: '^[0-9]{4}$',
  description: 'A code of 4 digits.',
  examples: ['0427'],
  rule: { fr: 'Le code est fait de 4 chiffres.', en: 'The code must be 4 digits.' },
})

export const OtpVerification = Type.Object({ email: Email, code: Code }, { title: 'OtpVerification' })

const AccessToken = Type.String({
  description: 'Send this token in the header `Authorization: Bearer`.',
  examples: ['eyJhbGciOiJIUzI1NiIs…'],
})

export const TokenResult = Type.Object(
  {
    access_token: AccessToken,
    is_new_user: Type.Boolean({ description: '`true` after a sign-up, `false` after a sign-in.' }),
  },
  { title: 'TokenResult' },
)

export const LogoutRequest = Type.Object(
  {
    forget: Type.Optional(
      Type.Boolean({
        description: 'Whether the client stops being a known client, for example on a shared computer.',
        examples: [true],
      }),
    ),
  },
  { title: 'LogoutRequest', description: 'The service treats any other body as an empty object.' },
)

export const RefreshResult = Type.Object(
  {
    access_token: AccessToken,
    token_type: Type.Literal('bearer'),
    expires_in: Type.Integer({ description: 'Seconds until the token expires.', examples: [3600] }),
  },
  { title: 'RefreshResult' },
)
