import type { NodemailerError, Transporter } from 'nodemailer'
import { type Mail, type Mailer, MailFailure, rejectUnsafeMail } from './mailer.ts'

// The longest wait for an answer of the server, at each step.
const STEP_TIMEOUT_MS = 10_000
// The longest time for a whole mail. It bounds a server that sends a byte now and then.
const SEND_TIMEOUT_MS = 20_000

/**
 * Creates a mailer that sends through a mail server. Each mail has its own connection: idle connections of a pool break
 * unnoticed, and the outbox already limits the mails in flight.
 * @param url `smtp://` or `smtps://`, with user and password if the server needs them
 * @param from the sender, as `Name <address>`
 */
export function createSmtpMailer(url: string, from: string): Mailer {
  let transport: Promise<Transporter> | undefined
  // The library loads slowly, so it loads with the first mail.
  const load = async () => {
    const { createTransport } = await import('nodemailer')
    return createTransport({
      url,
      dnsTimeout: STEP_TIMEOUT_MS,
      connectionTimeout: STEP_TIMEOUT_MS,
      greetingTimeout: STEP_TIMEOUT_MS,
      socketTimeout: STEP_TIMEOUT_MS,
      disableFileAccess: true,
      disableUrlAccess: true,
    })
  }
  return {
    async send(mail: Mail): Promise<void> {
      rejectUnsafeMail(mail)
      const { to, subject, text, html } = mail
      try {
        transport ??= load()
        await (await transport).sendMail({
          from,
          // Never a string: nodemailer reads a string as a list and mails every address on it.
          to: { name: '', address: to },
          subject,
          text,
          html,
          // RFC 3834: asks other servers not to send out-of-office answers.
          headers: { 'Auto-Submitted': 'auto-generated' },
          signal: AbortSignal.timeout(SEND_TIMEOUT_MS),
        })
      } catch (error) {
        throw toMailFailure(error as NodemailerError)
      }
    },
  }
}

/** Keeps the codes and drops text and cause, because a server's answer quotes the recipient. */
function toMailFailure({ code, command, responseCode }: NodemailerError): MailFailure {
  const message = [code ?? 'unknown fault', command, responseCode].filter(part => part).join(' ')
  // Only a rejected recipient or message is final. The operator can correct a rejected password or sender.
  const concernsMail = command === 'RCPT TO' || command === 'DATA'
  return new MailFailure(message, concernsMail && responseCode !== undefined && responseCode >= 500)
}
