import { newSecret } from '../secrets.ts'
import { type Mail, type Mailer, MailWithdrawn, rejectUnsafeMail } from './mailer.ts'

const MAX_KEPT_MAILS = 100

export type KeptMail = Mail & { sentAt: Date }

/** The development mailbox. It keeps the mails in memory for `/dev/mailbox`. */
export type Mailbox = Mailer & {
  /** The secret that every request to the mailbox must contain. */
  key: string
  /** Returns the latest mails, at most 100. The newest mail comes first. */
  latest(): readonly KeptMail[]
}

/**
 * Creates an empty mailbox.
 * @param now the clock that gives each mail its `sentAt`
 * @param key the key of the mailbox; by default a new one
 */
export function createMailbox(now: () => Date, key = newSecret()): Mailbox {
  const mails: KeptMail[] = []
  return {
    key,
    async send(mail, isCurrent) {
      rejectUnsafeMail(mail)
      if (isCurrent && !(await isCurrent())) throw new MailWithdrawn()
      mails.unshift({ ...mail, sentAt: now() })
      mails.splice(MAX_KEPT_MAILS)
    },
    async compose(mail) {
      rejectUnsafeMail(mail)
    },
    latest: () => mails,
  }
}
