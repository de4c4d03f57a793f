import type { FastifyBaseLogger } from 'fastify'
import { nameInMail } from '../accounts/names.ts'
import type { Sql } from '../db/sql.ts'
import { html } from '../http/format/html.ts'
import type { Keys } from '../keys.ts'
import type { Language } from '../language.ts'
import type { Mailer, MailFailure } from '../mail/mailer.ts'

type Dependencies = { sql: Sql; mailer: Mailer; keys: Keys; now: () => Date; log: FastifyBaseLogger }

/** The payload of a job that `issueCode` adds to the queue. */
type Payload = { code_id: string; sealed: string; language: Language }

type Row = { email: string; purpose: 'sign_up' | 'sign_in' | 'decoy'; expires_at: Date; first_name: string | null }

/**
 * Creates the task `send_code`, which mails one code. The task sends no mail if the code is a decoy or has expired. If
 * the code was replaced or used, no row has the id of the code, so the task sends no mail.
 * @throws MailFailure The task rejects with this error if the worker should retry the mail.
 */
export function sendCode({ sql, mailer, keys, now, log }: Dependencies): (payload: unknown) => Promise<void> {
  return async payload => {
    if (!isPayload(payload)) return log.error('dropped a send_code job because its payload is malformed')
    const { code_id, sealed, language } = payload
    const [row] = await sql<Row>`
      select code.email, code.purpose, code.expires_at, app_user.first_name
      from sign_in_code as code left join app_user on app_user.email = code.email
      where code.id = ${code_id}`
    if (!row || row.purpose === 'decoy' || row.expires_at <= now()) return

    const code = keys.open(code_id, sealed)
    if (code === undefined)
      return log.error({ code_id }, 'dropped a mail because no secret in JWT_SECRET decrypts the code')

    // A stranger can sign up with another person's address and enter any text as the name. If the mail contained this
    // name, it would deliver the stranger's text to that person.
    const name = row.purpose === 'sign_in' ? row.first_name : null
    try {
      await mailer.send({ to: row.email, ...codeEmail(code, language, name) })
    } catch (error) {
      const failure = error as MailFailure
      if (!failure.permanent) throw failure
      log.warn(
        { code_id, reason: failure.message },
        'did not mail a code: the mail server refused the mail permanently',
      )
    }
  }
}

function isPayload(value: unknown): value is Payload {
  const { code_id, sealed, language } = (value ?? {}) as Record<string, unknown>
  const isId = typeof code_id === 'string' && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(code_id)
  return isId && typeof sealed === 'string' && (language === 'fr' || language === 'en')
}

const TEXTS = {
  fr: {
    // French typography requires a no-break space before a colon and a question mark.
    subject: (code: string) => `Votre code Courtside\u00a0: ${code}`,
    greeting: (name: string | undefined) => (name ? `Bonjour ${name},` : 'Bonjour,'),
    intro: 'Voici votre code\u00a0:',
    // The 15 minutes start at the request, and the mail can arrive much later. So the text says when the 15 minutes
    // start.
    validity: 'Il est valable 15\u00a0minutes à compter de votre demande et ne sert qu’une fois.',
    secrecy: 'Ne le communiquez à personne.',
    ignore: 'Vous n’avez rien demandé\u00a0? Ignorez cet e-mail\u00a0: sans ce code, il ne se passera rien.',
  },
  en: {
    subject: (code: string) => `Your Courtside code: ${code}`,
    greeting: (name: string | undefined) => (name ? `Hello ${name},` : 'Hello,'),
    intro: 'Here is your code:',
    validity: 'It is valid for 15\u00a0minutes from your request and works once.',
    secrecy: 'Do not share it with anyone.',
    ignore: 'You did not ask for a code? Ignore this email: without the code, nothing will happen.',
  },
} as const

/**
 * Returns the subject, the text and the HTML of the mail with a code. The subject contains the code, so users can read
 * the code on a lock screen. Mail programs group mails with equal subjects, and in such a group users easily type the
 * code from an older mail. The code makes the subjects different, so mail programs do not group the mails.
 */
function codeEmail(code: string, language: Language, firstName: string | null) {
  const texts = TEXTS[language]
  const greeting = texts.greeting(firstName === null ? undefined : nameInMail(firstName))
  const subject = texts.subject(code)
  const text = `${greeting}

${texts.intro}

${code}

${texts.validity} ${texts.secrecy}

${texts.ignore}
`
  // The mail sets no colours, so it is readable on light and dark backgrounds. The mail loads no images.
  const htmlPart = html`<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>${subject}</title>
</head>
<body style="margin:0;padding:24px;font:16px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif">
<p>${greeting}</p>
<p>${texts.intro}</p>
<p style="font:bold 32px/1.2 ui-monospace,Menlo,Consolas,monospace;letter-spacing:0.2em">${code}</p>
<p>${texts.validity} <strong>${texts.secrecy}</strong></p>
<p>${texts.ignore}</p>
</body>
</html>
`
  return { subject, text, html: htmlPart.text }
}
