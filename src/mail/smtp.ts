import { Readable } from 'node:stream'
import type { NodemailerError, SMTPPoolOptions, Transporter } from 'nodemailer'
import { isLoopback } from '../loopback.ts'
import { type Mail, type Mailer, MailFailure, MailWithdrawn, rejectUnsafeMail, type Sender } from './mailer.ts'
import { openSocket } from './open-socket.ts'

// The maximum wait for the server at each step of the SMTP dialogue.
const STEP_TIMEOUT_MS = 10_000
// How long a connection is kept for the next mail. An idle connection can break unnoticed, so this time is short.
const IDLE_TIMEOUT_MS = 2_000
// The maximum time for one mail. Without this limit, a server that sends single bytes could delay a mail forever,
// because no step would time out.
const SEND_TIMEOUT_MS = 20_000

/**
 * Creates a mailer that sends mails through a mail server. The mailer keeps an SMTP connection for a short time after a
 * mail, and sends the next mail over it. If the kept connection breaks before the content of that mail leaves, the mail
 * goes over another connection. If it breaks later, `send` throws, because the server may have taken the mail.
 * @param url `smtp://` or `smtps://`, with user and password if the server requires them
 */
export function createSmtpMailer(url: string, { from, heloName }: Sender): Mailer {
  const { username, hostname } = new URL(url)
  // Nodemailer takes long to load. So we load it when the first mail is sent, and not at startup.
  let transports: Promise<{ smtp: Transporter; composer: Transporter }> | undefined
  const load = async () => {
    const { createTransport } = await import('nodemailer')
    const options: SMTPPoolOptions & { pool: true } = {
      url,
      pool: true,
      // The worker limits the number of mails that are sent at the same time, so no mail waits in the pool.
      maxConnections: Number.POSITIVE_INFINITY,
      idleTimeout: IDLE_TIMEOUT_MS,
      // Nodemailer repeats a mail only if no byte of its content has left.
      maxRequeues: 1,
      // A password must not be sent in clear text. So if the server does not offer STARTTLS, no mail is sent.
      requireTLS: username !== '' && !isLoopback(hostname),
      ...(heloName !== undefined && { name: heloName }),
      getSocket: ({ host, port, secure }, done) => {
        openSocket(host ?? 'localhost', Number(port) || (secure ? 465 : 587), STEP_TIMEOUT_MS).then(
          connection => done(null, { connection }),
          error => done(error, false),
        )
      },
      connectionTimeout: STEP_TIMEOUT_MS,
      greetingTimeout: STEP_TIMEOUT_MS,
      socketTimeout: STEP_TIMEOUT_MS,
      disableFileAccess: true,
      disableUrlAccess: true,
    }
    const smtp = createTransport(options)
    smtp.use('stream', ({ message, data }, done) => {
      const { isCurrent } = data as { isCurrent?: IsCurrent }
      const source = message.createReadStream()
      let content: Promise<Buffer> | undefined
      // If nodemailer repeats the mail, it reads the content again. The source can be read only once.
      const read = () => {
        content ??= source.toArray().then(Buffer.concat)
        return content
      }
      message.createReadStream = () => Readable.from(readContent(read, isCurrent), { objectMode: false })
      done()
    })
    return { smtp, composer: createTransport({ streamTransport: true, buffer: true }) }
  }
  async function deliver(mail: Mail, by: 'smtp' | 'composer', isCurrent?: IsCurrent): Promise<void> {
    rejectUnsafeMail(mail)
    const { to, subject, text, html, headers } = mail
    // Nodemailer would report this error as a fault of the connection.
    let fault: unknown
    const keepFault: IsCurrent | undefined =
      isCurrent &&
      (() =>
        isCurrent().catch(error => {
          fault = error
          throw error
        }))
    try {
      transports ??= load()
      await (await transports)[by].sendMail({
        from,
        // `to` is an object, because nodemailer would parse a string as a list of recipients and send the mail to each
        // recipient in the list.
        to: { name: '', address: to },
        subject,
        text,
        html,
        // This mail header asks other mail servers not to send out-of-office replies (RFC 3834).
        headers: { 'Auto-Submitted': 'auto-generated', ...headers },
        signal: AbortSignal.timeout(SEND_TIMEOUT_MS),
        ...{ isCurrent: keepFault },
      })
    } catch (error) {
      if (error instanceof MailWithdrawn) throw error
      if (fault !== undefined) throw fault
      throw toMailFailure(error as NodemailerError)
    }
  }
  return { send: (mail, isCurrent) => deliver(mail, 'smtp', isCurrent), compose: mail => deliver(mail, 'composer') }
}

type IsCurrent = () => Promise<boolean>

/**
 * Reads the content of a mail if it is still current. Nodemailer begins to read when the server waits for the content.
 * After an error, it closes the connection before the end of the content, so the server drops the mail. The content is
 * one chunk, because nodemailer writes each chunk to the socket with a separate system call.
 */
async function* readContent(read: () => Promise<Buffer>, isCurrent?: IsCurrent): AsyncGenerator<Buffer> {
  if (isCurrent && !(await isCurrent())) throw new MailWithdrawn()
  yield await read()
}

/**
 * Returns a failure that contains only the error codes and the SMTP command. Nodemailer's error message quotes the
 * server's answer, which can contain the recipient.
 */
function toMailFailure({ code, command, responseCode, response }: NodemailerError): MailFailure {
  const status = /^\d{3}[ -](\d\.\d{1,3}\.\d{1,3})\b/.exec(response ?? '')?.[1]
  const message = [code ?? 'unknown error', command, responseCode, status].filter(part => part).join(' ')
  const concernsMail = responseCode !== undefined && (command === 'RCPT TO' || command === 'DATA')
  const isPermanent = concernsMail && isRefusedForGood(responseCode, status)
  // The code 421 means that the server closes the connection. The statuses 4.3.x, 4.4.x and 4.7.x are about its system,
  // its network and its policy (RFC 3463).
  const isDeferred = concernsMail && responseCode < 500 && responseCode !== 421 && !/^4\.[347]\./.test(status ?? '')
  const isHardBounce = command === 'RCPT TO' && isUnknownAddress(responseCode, status)
  return new MailFailure(message, isPermanent, {
    isAboutMail: isPermanent || isDeferred,
    isHardBounce,
    isAnswer: responseCode !== undefined && responseCode >= 400,
  })
}

/** Returns whether an answer at RCPT TO says that the address does not work: no such mailbox, or a disabled one. */
function isUnknownAddress(code: number | undefined, status: string | undefined): boolean {
  return (code === 550 || code === 553) && /^5\.(?:1\.(?:1|2|3|6|10)|2\.1)$/.test(status ?? '')
}

/**
 * Returns whether an answer refuses the recipient or the content permanently. All other answers are about the sender or
 * the server, so a retry can succeed after the operator has corrected a setting. Many servers refuse the sender or the
 * name in the greeting only at RCPT TO, for example with 5.1.8, 5.5.2 or 5.7.1 (RFC 3463).
 */
function isRefusedForGood(code: number, status: string | undefined): boolean {
  if (status === undefined) return code >= 550 && code <= 553
  return code >= 500 && /^5\.(?:1\.(?:1|2|3|6|10)|2\.\d+|3\.4|6\.\d+)$/.test(status)
}
