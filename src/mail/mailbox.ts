import { type Mail, type Mailer, rejectUnsafeMail } from './mailer.ts'

const MAX_KEPT_MAILS = 100

export type KeptMail = Mail & { sentAt: Date }

/** The development mailbox. It keeps the mails in memory; `/dev/mailbox` shows them. */
export type Mailbox = Mailer & {
  /** Returns the latest hundred mails, newest first. */
  latest(): readonly KeptMail[]
}

/** Creates an empty mailbox. @param now returns the time at which a mail is stored */
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
