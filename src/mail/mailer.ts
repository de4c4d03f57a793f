/** One mail to one address. `text` and `html` say the same. */
export type Mail = { to: string; subject: string; text: string; html: string }

export interface Mailer {
  /**
   * Hands the mail over for delivery; when it resolves, somebody else is responsible for it.
   * @throws MailFailure with nothing of the mail in its message; `permanent` when trying again is of no use
   */
  send(mail: Mail): Promise<void>
}

/** Why a mail was not handed over. A mail server quotes the recipient in its answers, so none of its words are kept. */
export class MailFailure extends Error {
  readonly permanent: boolean
  constructor(message: string, permanent: boolean) {
    super(message)
    this.name = 'MailFailure'
    this.permanent = permanent
  }
}

// One address and nothing else: no list, no display name, no quotes, no comment, no line break.
const ONE_ADDRESS = /^[^\s\x00-\x1f\x7f@<>()[\]\\,;:"]+@[^\s\x00-\x1f\x7f@<>()[\]\\,;:"]+$/

/** What every implementation refuses before it does anything. @throws MailFailure, permanent */
export function refuseUnsafe({ to, subject }: Mail): void {
  if (!ONE_ADDRESS.test(to)) throw new MailFailure('not exactly one plain address', true)
  if (/[\x00-\x1f\x7f\u2028\u2029]/.test(subject)) throw new MailFailure('a control character in the subject', true)
}
