import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { type ParsedMail, simpleParser } from 'mailparser'
import { SMTPServer, type SMTPServerDataStream, type SMTPServerSession } from 'smtp-server'
import { waitUntil } from './wait-until.ts'

/**
 * `refuse` rejects connections. `silent` accepts connections and never replies. `hold` receives a mail, and confirms
 * the mail when `release` is called. `defer` answers every recipient with 451, and `reject` with 550. `block` answers
 * with 554 5.7.1, as servers do that have blocklisted the sender. `reply` answers with the code and the status in
 * `reply`, and `content` does the same after the content. These replies quote the recipient, as real servers do. `slow`
 * takes 250 ms for each mail.
 */
export type Mode = 'accept' | 'refuse' | 'silent' | 'hold' | 'defer' | 'reject' | 'block' | 'reply' | 'content' | 'slow'

export type Received = { from: string; to: string[]; parsed: ParsedMail }

/** Starts a mail server on a free port. */
export async function smtpServer(mode: Mode = 'accept') {
  const mails: Received[] = []
  const seen = { connections: 0, recipients: 0 }
  const held: (() => void)[] = []

  async function receive(stream: SMTPServerDataStream, session: SMTPServerSession): Promise<void> {
    const parsed = await simpleParser(stream)
    if (server.mode === 'slow') await delay(250)
    if (server.mode === 'hold') {
      await new Promise<void>(resolve => {
        held.push(resolve)
      })
    }
    const { mailFrom, rcptTo } = session.envelope
    mails.push({ from: mailFrom ? mailFrom.address : '', to: rcptTo.map(recipient => recipient.address), parsed })
  }

  function begin(done: (error?: Error | null) => void): void {
    if (server.mode === 'silent') return
    done(server.mode === 'refuse' ? Object.assign(new Error('not now'), { responseCode: 421 }) : null)
  }

  const smtp = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    disableReverseLookup: true,
    // Without this option, the server rejects addresses of 254 characters, which RFC 5321 allows.
    lenientAddressParsing: true,
    // Without this option, a connection that stays silent would delay the end of a test.
    closeTimeout: 50,
    onConnect(_session, done) {
      seen.connections += 1
      begin(done)
    },
    // A mailer may have kept a connection from an earlier mode.
    onMailFrom: (_address, _session, done) => begin(done),
    onRcptTo(recipient, _session, done) {
      seen.recipients += 1
      const replies: Partial<Record<Mode, [number, string?]>> = {
        defer: [451],
        reject: [550],
        block: [554, '5.7.1 '],
        reply: server.reply,
      }
      const [responseCode, status = ''] = replies[server.mode] ?? []
      const reply = `${status}<${recipient.address}> is unwelcome`
      done(responseCode ? Object.assign(new Error(reply), { responseCode }) : null)
    },
    onData(stream, session, done) {
      const [responseCode, status] = server.reply
      const refusal = Object.assign(new Error(`${status}the content is unwelcome`), { responseCode })
      receive(stream, session).then(() => done(server.mode === 'content' ? refusal : null), done)
    },
  })
  // A client that closes its connection early is not an error of the server.
  smtp.on('error', () => {})
  smtp.listen(0, '127.0.0.1')
  await once(smtp.server, 'listening')

  const server = {
    mode,
    reply: [450, ''] as [number, string],
    mails,
    seen,
    /** Contains one function for each unconfirmed mail. A call of the function confirms its mail. */
    held,
    release() {
      for (const accept of held.splice(0)) accept()
    },
    url: `smtp://127.0.0.1:${(smtp.server.address() as AddressInfo).port}`,
    /** Waits until a condition on the received mails and connections is true. @throws after 60 s */
    until: (condition: () => boolean) => waitUntil(condition, 60_000),
    close: () => new Promise<void>(resolve => smtp.close(() => resolve())),
  }
  return server
}

export type SmtpServer = Awaited<ReturnType<typeof smtpServer>>
