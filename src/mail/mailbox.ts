import { type Mail, type Mailer, refuseUnsafe } from './mailer.ts'

const KEPT = 100

export type KeptMail = Mail & { sentAt: Date }

/** The development mailbox: mails stay in memory, to be read at `/dev/mailbox`. */
export type Mailbox = Mailer & {
  /** The latest hundred, newest first. */
  latest(): readonly KeptMail[]
}

/** @param now dates what is kept */
export function createMailbox(now: () => Date): Mailbox {
  const mails: KeptMail[] = []
  return {
    async send(mail) {
      refuseUnsafe(mail)
      const { to, subject, text, html } = mail
      mails.unshift({ to, subject, text, html, sentAt: now() })
      mails.splice(KEPT)
    },
    latest: () => mails,
  }
}
