import type { Mailer } from './mailer.ts'

/** The number of failed mails in a row after which the mail server counts as one that refuses every mail. */
const MANY_FAILURES = 5

/** A mailer that counts its failures. */
export type WatchedMailer = Mailer & { failsAlways(): boolean }

/** Adds to a mailer the function `failsAlways`, which returns whether at least the last five mails failed. */
export function watchMailer(mailer: Mailer): WatchedMailer {
  let failuresInARow = 0
  return {
    ...mailer,
    async send(mail) {
      try {
        await mailer.send(mail)
        failuresInARow = 0
      } catch (error) {
        failuresInARow += 1
        throw error
      }
    },
    failsAlways: () => failuresInARow >= MANY_FAILURES,
  }
}
