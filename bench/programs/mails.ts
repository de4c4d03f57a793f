import { createSmtpMailer } from '../../src/mail/smtp.ts'

const CONCURRENCY = 64

type CodeMail = { id: string; email: string; code: string }

/**
 * Sends the mails of a measured program through the mailer of the service, if SMTP_URL is set. Otherwise keeps the
 * codes, and the bench takes them.
 * @param finish is called with the ids of mails that the mail server has taken
 */
export function sendMails(finish: (ids: string[]) => Promise<unknown>) {
  const url = process.env.SMTP_URL
  const mailer = url === undefined ? undefined : createSmtpMailer(url, { from: 'Courtside <bench@localhost>' })
  const kept = new Map<string, string>()
  const waiting: CodeMail[] = []
  const sent: string[] = []
  let running = 0

  async function send({ id, email, code }: CodeMail): Promise<void> {
    const text = `Votre code :\n\n${code}\n\nIl est valable 15 minutes.`
    await mailer!.send({ to: email, subject: 'Votre code', text, html: `<p>${text}</p>` })
    // The mails of one turn of the event loop are finished together.
    if (sent.push(id) === 1) setImmediate(() => void finish(sent.splice(0)))
  }

  function fill(): void {
    while (running < CONCURRENCY && waiting.length > 0) {
      running += 1
      void send(waiting.shift()!).finally(() => {
        running -= 1
        fill()
      })
    }
  }

  return {
    add(mail: CodeMail): void {
      if (!mailer) {
        kept.set(mail.email, mail.code)
        return
      }
      waiting.push(mail)
      fill()
    },
    /** Returns the kept codes by address, and removes them. */
    take(): Record<string, string> {
      const codes = Object.fromEntries(kept)
      kept.clear()
      return codes
    },
  }
}
