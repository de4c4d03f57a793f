import type { FastifyBaseLogger } from 'fastify'
import type { Sql } from '../db/sql.ts'
import { html } from '../http/format/html.ts'
import type { Keys } from '../keys.ts'
import type { Language } from '../language.ts'
import type { Mailer, MailFailure } from '../mail/mailer.ts'

type Deps = { sql: Sql; mailer: Mailer; keys: Keys; now: () => Date; log: FastifyBaseLogger }

/** What `codes.request` queues. */
type Payload = { code_id: string; sealed: string; language: Language }

type Row = { email: string; purpose: 'sign_up' | 'sign_in' | 'decoy'; expires_at: Date; first_name: string | null }

/**
 * The task `send_code`: mails a code while it is the live one. A code that was superseded or used has no row any more,
 * since each code has an id of its own; that one, an expired one and a decoy are dropped.
 * @throws MailFailure when the mail should be tried again
 */
export function sendCode({ sql, mailer, keys, now, log }: Deps): (payload: unknown) => Promise<void> {
  return async payload => {
    if (!isPayload(payload)) return log.error('a job send_code with a payload that is none was dropped')
    const { code_id, sealed, language } = payload
    const [row] = await sql<Row>`
      select code.email, code.purpose, code.expires_at, app_user.first_name
      from sign_in_code as code left join app_user on app_user.email = code.email
      where code.id = ${code_id}`
    if (!row || row.purpose === 'decoy' || row.expires_at <= now()) return

    const code = keys.open(code_id, sealed)
    if (code === undefined) return log.error({ code_id }, 'no key of JWT_SECRET opens this code; its mail was dropped')

    // The name of a sign-up is a stranger's text, and the address may be anybody's: we don't carry words between them.
    const name = row.purpose === 'sign_in' ? row.first_name : null
    try {
      await mailer.send({ to: row.email, ...codeEmail(code, language, name) })
    } catch (error) {
      const failure = error as MailFailure
      if (!failure.permanent) throw failure
      log.warn({ code_id, reason: failure.message }, 'a code could not be mailed: refused for good')
    }
  }
}

function isPayload(value: unknown): value is Payload {
  const { code_id, sealed, language } = (value ?? {}) as Record<string, unknown>
  const isId = typeof code_id === 'string' && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(code_id)
  return isId && typeof sealed === 'string' && (language === 'fr' || language === 'en')
}

const WORDS = {
  fr: {
    // No-break spaces, as French typography has them before a colon and a question mark.
    subject: (code: string) => `Votre code Courtside\u00a0: ${code}`,
    hello: (name: string | undefined) => (name ? `Bonjour ${name},` : 'Bonjour,'),
    here: 'Voici votre code\u00a0:',
    // A mail can be late, so the time counts from the request and not from its arrival.
    holds: 'Il est valable 15\u00a0minutes à compter de votre demande et ne sert qu’une fois.',
    keep: 'Ne le communiquez à personne.',
    ignore: 'Vous n’avez rien demandé\u00a0? Ignorez cet e-mail\u00a0: sans ce code, il ne se passera rien.',
  },
  en: {
    subject: (code: string) => `Your Courtside code: ${code}`,
    hello: (name: string | undefined) => (name ? `Hello ${name},` : 'Hello,'),
    here: 'Here is your code:',
    holds: 'It is valid for 15\u00a0minutes from your request and works once.',
    keep: 'Do not share it with anyone.',
    ignore: 'You did not ask for it? Ignore this email: without the code, nothing will happen.',
  },
} as const

/**
 * Subject, text and HTML of a code's mail. The code is in the subject: it can be read on a lock screen, and mail programs
 * fold mails of the same subject together, so that people would type the code of an older one. A name never gets there.
 */
function codeEmail(code: string, language: Language, firstName: string | null) {
  const words = WORDS[language]
  const hello = words.hello(firstName === null ? undefined : oneLine(firstName))
  const subject = words.subject(code)
  const text = `${hello}

${words.here}

${code}

${words.holds} ${words.keep}

${words.ignore}
`
  // No colours of its own, so that it reads on light and dark alike; no images, nothing to fetch.
  const page = html`<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>${subject}</title>
</head>
<body style="margin:0;padding:24px;font:16px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif">
<p>${hello}</p>
<p>${words.here}</p>
<p style="font:bold 32px/1.2 ui-monospace,Menlo,Consolas,monospace;letter-spacing:0.2em">${code}</p>
<p>${words.holds} <strong>${words.keep}</strong></p>
<p>${words.ignore}</p>
</body>
</html>
`
  return { subject, text, html: page.text }
}

/** A name that cannot start a line of its own, nor turn the text's direction. */
function oneLine(name: string): string {
  return name.replace(/[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]+/gu, ' ').trim()
}
