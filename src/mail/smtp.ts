import type { NodemailerError, Transporter } from 'nodemailer'
import { type Mail, type Mailer, MailFailure, refuseUnsafe } from './mailer.ts'

// A server that accepts and stays silent is left after this long, at whatever step.
const SILENCE_MS = 10_000
// And one that drips a byte now and then, after this long in all.
const DEADLINE_MS = 20_000

/**
 * Sends through a mail server, a connection a mail: a pool's idle connections go stale unseen, and the outbox limits how
 * many mails are under way.
 * @param url `smtp://` or `smtps://`, with user and password where they are needed
 * @param from the sender, as `Name <address>`
 */
export function createSmtpMailer(url: string, from: string): Mailer {
  let transport: Promise<Transporter> | undefined
  // The library takes its time to load; most starts with the development mailbox never need it.
  const load = async () => {
    const { createTransport } = await import('nodemailer')
    return createTransport({
      url,
      dnsTimeout: SILENCE_MS,
      connectionTimeout: SILENCE_MS,
      greetingTimeout: SILENCE_MS,
      socketTimeout: SILENCE_MS,
      disableFileAccess: true,
      disableUrlAccess: true,
    })
  }
  return {
    async send(mail: Mail): Promise<void> {
      refuseUnsafe(mail)
      const { to, subject, text, html } = mail
      try {
        transport ??= load()
        await (await transport).sendMail({
          from,
          // Never a string: that would be read as a list, and mail everybody on it.
          to: { name: '', address: to },
          subject,
          text,
          html,
          // RFC 3834: keeps out-of-office answers from coming back.
          headers: { 'Auto-Submitted': 'auto-generated' },
          signal: AbortSignal.timeout(DEADLINE_MS),
        })
      } catch (error) {
        throw failure(error as NodemailerError)
      }
    },
  }
}

/** Keeps the codes and drops the words, and with them the cause: a server's answer quotes the recipient. */
function failure({ code, command, responseCode }: NodemailerError): MailFailure {
  const said = [code ?? 'unknown fault', command, responseCode].filter(part => part).join(' ')
  // Only what is said of the recipient or the message is final. A refused password or sender is the operator's to mend.
  const about = command === 'RCPT TO' || command === 'DATA'
  return new MailFailure(said, about && responseCode !== undefined && responseCode >= 500)
}
