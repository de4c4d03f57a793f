import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { type ParsedMail, simpleParser } from 'mailparser'
import { SMTPServer, type SMTPServerDataStream, type SMTPServerSession } from 'smtp-server'

/**
 * `refuse` turns connections away, `silent` accepts them and says nothing, `hold` takes a mail in and says so only at `release`,
 * `defer` answers 451 and `reject` 550 to every recipient, quoting it as real servers do.
 */
export type Mode = 'accept' | 'refuse' | 'silent' | 'hold' | 'defer' | 'reject'

export type Received = { from: string; to: string[]; parsed: ParsedMail }

/** A real mail server on a free port of this machine. `until` waits for what comes, rather than for time to pass. */
export async function smtpServer(mode: Mode = 'accept') {
  const mails: Received[] = []
  const seen = { connections: 0, recipients: 0 }
  const held: (() => void)[] = []
  let waiting: (() => void)[] = []

  function happened(): void {
    for (const check of waiting) check()
  }

  async function receive(stream: SMTPServerDataStream, session: SMTPServerSession): Promise<void> {
    const parsed = await simpleParser(stream)
    if (server.mode === 'hold') {
      await new Promise<void>(resolve => {
        held.push(resolve)
        happened()
      })
    }
    const { mailFrom, rcptTo } = session.envelope
    mails.push({ from: mailFrom ? mailFrom.address : '', to: rcptTo.map(recipient => recipient.address), parsed })
    happened()
  }

  const smtp = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    disableReverseLookup: true,
    // Else it turns addresses of 254 characters away, which RFC 5321 allows.
    lenientAddressParsing: true,
    // Connections that were kept silent or held don't delay the end of a test.
    closeTimeout: 50,
    onConnect(_session, done) {
      seen.connections += 1
      happened()
      if (server.mode === 'silent') return
      done(server.mode === 'refuse' ? Object.assign(new Error('not now'), { responseCode: 421 }) : null)
    },
    onRcptTo(recipient, _session, done) {
      seen.recipients += 1
      happened()
      const responseCode = { defer: 451, reject: 550 }[server.mode as string]
      done(responseCode ? Object.assign(new Error(`<${recipient.address}> is unwelcome`), { responseCode }) : null)
    },
    onData(stream, session, done) {
      receive(stream, session).then(() => done(), done)
    },
  })
  // A client that breaks off is no failure of the server.
  smtp.on('error', () => {})
  smtp.listen(0, '127.0.0.1')
  await once(smtp.server, 'listening')

  const server = {
    mode,
    mails,
    seen,
    /** Mails that are being held. */
    held,
    release() {
      for (const accept of held.splice(0)) accept()
    },
    url: `smtp://127.0.0.1:${(smtp.server.address() as AddressInfo).port}`,
    /** Resolves when `condition` holds, looked at whenever something happens here. */
    until(condition: () => boolean): Promise<void> {
      if (condition()) return Promise.resolve()
      return new Promise(resolve => {
        const check = () => {
          if (!condition()) return
          waiting = waiting.filter(other => other !== check)
          resolve()
        }
        waiting.push(check)
      })
    },
    close: () => new Promise<void>(resolve => smtp.close(() => resolve())),
  }
  return server
}

export type SmtpServer = Awaited<ReturnType<typeof smtpServer>>
