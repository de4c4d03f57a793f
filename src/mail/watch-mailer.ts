import { type Mailer, MailFailure } from './mailer.ts'

/** The number of failed mails in a row after which the mail server counts as one that refuses every mail. */
const MANY_FAILURES = 5

/** A mailer that counts its failures. */
export type WatchedMailer = Mailer & { failsAlways(): boolean }

/**
 * Adds to a mailer the function `failsAlways`, which returns whether at least the last five mails failed. A refusal of
 * the mail or its recipient does not count, because strangers choose the recipients. An error of `isCurrent` does not
 * count either.
 */
export function watchMailer(mailer: Mailer): WatchedMailer {
  let failuresInARow = 0
  return {
    ...mailer,
    async send(mail, isCurrent) {
      try {
        await mailer.send(mail, isCurrent)
        failuresInARow = 0
      } catch (error) {
        if (error instanceof MailFailure && !error.isAboutMail) failuresInARow += 1
        throw error
      }
    },
    failsAlways: () => failuresInARow >= MANY_FAILURES,
  }
}
