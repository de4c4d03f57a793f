import { type Mail, type Mailer, rejectUnsafeMail } from './mailer.ts'

const MAX_KEPT_MAILS = 100

export type KeptMail = Mail & { sentAt: Date }

/** The development mailbox. It keeps the mails in memory for `/dev/mailbox`. */
export type Mailbox = Mailer & {
  /** Returns the latest mails, at most 100. The newest mail comes first. */
  latest(): readonly KeptMail[]
}

/** Creates an empty mailbox. @param now the clock that gives each mail its `sentAt` */
export function createMailbox(now: () => Date): Mailbox {
  const mails: KeptMail[] = []
  return {
    async send(mail) {
      rejectUnsafeMail(mail)
      const { to, subject, text, html } = mail
      mails.unshift({ to, subject, text, html, sentAt: now() })
      mails.splice(MAX_KEPT_MAILS)
    },
    latest: () => mails,
  }
}
