import { Type } from 'typebox'

/** Letters, marks, digits, signs and spaces, but nothing that breaks or steers a line. */
const ONE_LINE = '^[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029]*$'

const Email = Type.String({
  maxLength: 254,
  rule: { fr: 'L’adresse e-mail n’est pas valide.', en: 'The e-mail address is not valid.' },
})

const Name = (field: string) =>
  Type.String({
    minLength: 1,
    maxLength: 100,
    pattern: ONE_LINE,
    rule: {
      fr: `Le champ ${field} doit tenir sur une ligne, en 1 à 100 caractères.`,
      en: `The ${field} field must be one line of 1 to 100 characters.`,
    },
  })

export const CredentialsRequest = Type.Object({
  email: Email,
  first_name: Type.Optional(Name('first_name')),
  last_name: Type.Optional(Name('last_name')),
  accept_cgu: Type.Optional(Type.Boolean()),
})

export const Code = Type.String({
  verbatim: true,
  pattern: '^[0-9]{4}$',
  rule: { fr: 'Le code est fait de 4 chiffres.', en: 'The code is made of 4 digits.' },
})

export const OtpVerification = Type.Object({ email: Email, code: Code })

export const TokenResult = Type.Object({ access_token: Type.String(), is_new_user: Type.Boolean() })

export const RefreshResult = Type.Object({
  access_token: Type.String(),
  token_type: Type.Literal('bearer'),
  expires_in: Type.Integer({ description: 'seconds' }),
})

export const Message = Type.Object({ message: Type.String() })
