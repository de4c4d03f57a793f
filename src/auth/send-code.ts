import type { FastifyBaseLogger } from 'fastify'
import type { Sql } from '../db/sql.ts'
import type { Keys } from '../keys.ts'
import type { Language } from '../language.ts'
import type { Mailer, MailFailure } from '../mail/mailer.ts'
import { composeCodeEmail, type MailedCode, type MailTexts } from './code-email.ts'

type Dependencies = {
  sql: Sql
  mailer: Mailer
  keys: Keys
  now: () => Date
  log: FastifyBaseLogger
  texts: MailTexts
}

/**
 * The row of the outbox that `issueCode` stores. `payload` is a `Payload`. If its `language` is null, the request named
 * no language, so the mail has the language of the account.
 */
type CodeDelivery = { code_id: string | null; payload: unknown }
type Payload = { sealed: string; language: Language | null }

/**
 * The outcome of an attempt. `delivered`: the mail server took the mail. `decoy`: the address is unknown. `dropped`:
 * the code was used, replaced or has expired. `refused`: the mail server refused the recipient or the content
 * permanently. `sealed`: no secret of this process decrypts the code, so another process must send the mail.
 */
type Attempt = { outcome: 'delivered' | 'decoy' | 'dropped' | 'refused' | 'sealed'; retryAt?: Date }

type Row = MailedCode & { email: string; locale: Language | null }

// A process that cannot decrypt a code leaves the delivery to the other processes for this time.
const SEALED_RETRY_MS = 2_000

/**
 * Creates the function that mails one code. It composes the mail for a decoy too, so both cases need the same time
 * until the connection to the mail server.
 * @returns the function. It throws MailFailure if the worker should retry the mail
 */
export function sendCode({
  sql,
  mailer,
  keys,
  now,
  log,
  texts,
}: Dependencies): (delivery: CodeDelivery) => Promise<Attempt> {
  return async ({ code_id, payload }) => {
    if (code_id === null || !isPayload(payload)) {
      log.error('dropped a delivery of a code because its payload is malformed')
      return { outcome: 'dropped' }
    }
    const [row] = await sql<Row>`
      select code.email, code.purpose, code.sent_at, code.expires_at,
        coalesce(code.first_name, app_user.first_name) as first_name,
        coalesce(code.last_name, app_user.last_name) as last_name, app_user.locale
      from sign_in_code as code left join app_user on app_user.email = code.email
      where code.id = ${code_id}`
    if (!row || row.expires_at <= now()) return { outcome: 'dropped' }

    const code = keys.open(code_id, payload.sealed)
    if (code === undefined) {
      log.error({ code_id }, 'left a mail to another process because no secret in JWT_SECRET decrypts the code')
      return { outcome: 'sealed', retryAt: new Date(now().getTime() + SEALED_RETRY_MS) }
    }
    const language = payload.language ?? row.locale ?? 'fr'
    const mail = { to: row.email, ...composeCodeEmail(row, code, language, texts) }
    if (row.purpose === 'decoy') {
      await mailer.compose(mail)
      return { outcome: 'decoy' }
    }
    try {
      await mailer.send(mail)
      return { outcome: 'delivered' }
    } catch (error) {
      const failure = error as MailFailure
      if (!failure.permanent) throw failure
      log.warn(
        { code_id, reason: failure.message },
        'did not mail a code: the mail server refused the mail permanently',
      )
      return { outcome: 'refused' }
    }
  }
}

function isPayload(value: unknown): value is Payload {
  const { sealed, language } = (value ?? {}) as Record<string, unknown>
  return typeof sealed === 'string' && (language === null || language === 'fr' || language === 'en')
}
