import { domainToASCII } from 'node:url'

/** One mail to one address. `text` and `html` have the same content. */
export type Mail = {
  to: string
  subject: string
  text: string
  html: string
  /** Further headers of the mail, such as `List-Unsubscribe`. Names and values are ASCII. */
  headers?: Readonly<Record<string, string>>
}

export type Sender = {
  /** `Name <address>`, or a plain address. */
  from: string
  /** The name of this host in the SMTP greeting. If undefined, the mailer uses the name of the machine. */
  heloName?: string | undefined
}

export interface Mailer {
  /**
   * Hands the mail over to a program that delivers it, such as a mail server. When the promise resolves, that program
   * is responsible for the mail.
   * @param isCurrent is called just before the content leaves, because the steps before it can take seconds. If it
   *   returns false, the mail does not leave
   * @throws MailFailure if the program did not accept the mail. `permanent` is true if a retry would fail too
   * @throws MailWithdrawn if `isCurrent` returned false
   * @throws the error of `isCurrent`
   */
  send(mail: Mail, isCurrent?: () => Promise<boolean>): Promise<void>
  /**
   * Builds the message of a mail and discards it, without a connection. The work is the same as before the connection
   * in `send`. A worker calls this method for a decoy, so the load of the worker does not reveal that no mail is sent.
   * @throws MailFailure with `permanent: true` if the mail is unsafe
   */
  compose(mail: Mail): Promise<void>
}

/**
 * An error that states why a mail was not handed over. The log contains the message of this error, and the log must not
 * contain e-mail addresses. Mail servers quote the recipient in their answers. So the message contains no part of the
 * mail and no part of a mail server's answer.
 */
export class MailFailure extends Error {
  readonly permanent: boolean
  /** Whether the reason is the mail or its recipient. Otherwise the reason is the server, the network or the sender. */
  readonly isAboutMail: boolean
  /** Whether the server refused the recipient in a way that says that the address does not work. */
  readonly isHardBounce: boolean
  /** Whether the server answered that it does not take the mail. Without an answer, it may have taken the mail. */
  readonly isAnswer: boolean
  constructor(
    message: string,
    permanent: boolean,
    { isAboutMail = permanent, isHardBounce = false, isAnswer = false } = {},
  ) {
    super(message)
    this.name = 'MailFailure'
    this.permanent = permanent
    this.isAboutMail = isAboutMail
    this.isHardBounce = isHardBounce
    this.isAnswer = isAnswer
  }
}

/**
 * Returns the domain of a sender in ASCII, because headers contain it. Returns `localhost` if it is not a host name.
 */
export function findSenderDomain(from: string): string {
  return domainToASCII(/@([^@>\s]+)>?$/.exec(from)?.[1] ?? '') || 'localhost'
}

/** The error for a mail that was not sent because its content was no longer current. */
export class MailWithdrawn extends MailFailure {
  constructor() {
    super('the content is no longer current', false, { isAboutMail: true })
    this.name = 'MailWithdrawn'
  }
}

// Matches exactly one plain address. Does not match a list of addresses, a display name, quotes, a comment or a line
// break.
const ONE_ADDRESS = /^[^\s\x00-\x1f\x7f@<>()[\]\\,;:"]+@[^\s\x00-\x1f\x7f@<>()[\]\\,;:"]+$/

/** Matches the name and the value of a header that is one line. */
const ONE_HEADER = /^[A-Za-z0-9-]+: [\x20-\x7e]*$/

/**
 * Refuses a mail whose address, subject or headers could add recipients or mail headers. Every mailer must call this
 * function before it sends a mail.
 * @throws MailFailure with `permanent: true` if the mail is unsafe
 */
export function rejectUnsafeMail({ to, subject, headers = {} }: Mail): void {
  if (!ONE_ADDRESS.test(to)) throw new MailFailure('the recipient is not exactly one plain address', true)
  if (/[\x00-\x1f\x7f\u2028\u2029]/.test(subject)) {
    throw new MailFailure('the subject contains a control character', true)
  }
  if (Object.entries(headers).some(([name, value]) => !ONE_HEADER.test(`${name}: ${value}`))) {
    throw new MailFailure('a header is not one line of ASCII', true)
  }
}
