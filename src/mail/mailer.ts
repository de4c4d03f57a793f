/** One mail to one address. `text` and `html` are two forms of the same content. */
export type Mail = { to: string; subject: string; text: string; html: string }

export interface Mailer {
  /**
   * Hands the mail over for delivery. After it resolves, another program is responsible for the mail.
   * @throws MailFailure without any part of the mail in its message; `permanent` if another attempt would fail too
   */
  send(mail: Mail): Promise<void>
}

/** The reason why a mail was not handed over. Mail servers quote the recipient, so the message never contains their text. */
export class MailFailure extends Error {
  readonly permanent: boolean
  constructor(message: string, permanent: boolean) {
    super(message)
    this.name = 'MailFailure'
    this.permanent = permanent
  }
}

// Exactly one address: no list, display name, quotes, comment or line break.
const ONE_ADDRESS = /^[^\s\x00-\x1f\x7f@<>()[\]\\,;:"]+@[^\s\x00-\x1f\x7f@<>()[\]\\,;:"]+$/

/** Rejects unsafe mails. Every implementation calls it first. @throws MailFailure, permanent */
export function rejectUnsafeMail({ to, subject }: Mail): void {
  if (!ONE_ADDRESS.test(to)) throw new MailFailure('not exactly one plain address', true)
  if (/[\x00-\x1f\x7f\u2028\u2029]/.test(subject)) throw new MailFailure('a control character in the subject', true)
}
