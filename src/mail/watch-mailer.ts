import { type Mailer, MailFailure } from './mailer.ts'

/** The number of failed mails in a row after which the mail server counts as one that refuses every mail. */
const MANY_FAILURES = 5

/** The end of a warning becomes visible only at a multiple of this time after the process has started. */
const PERIOD_MS = 300_000

/** A mailer that counts its failures. */
export type WatchedMailer = Mailer & { failsAlways(): boolean }

/**
 * Adds to a mailer the function `failsAlways`, which returns whether at least the last five mails failed, for reasons
 * that are not about the mail or its recipient. Everyone can read the result at `/readyz`, and no mail goes to an
 * unknown address. So the result must not reveal whether one mail was sent:
 * - A recipient that the server refuses does not count. Strangers choose the recipients.
 * - The end of a warning becomes visible only at the end of a period of five minutes.
 * @param now returns milliseconds of a clock that never jumps
 */
export function watchMailer(mailer: Mailer, now: () => number = () => performance.now()): WatchedMailer {
  let failuresInARow = 0
  let isFailing = false
  // The period of the first success since `isFailing` was set, or since the end of a warning became visible.
  let successPeriod: number | undefined
  const findPeriod = () => Math.floor(now() / PERIOD_MS)

  function countSuccess(): void {
    failuresInARow = 0
    successPeriod ??= findPeriod()
  }

  function countFailure(error: unknown): void {
    if (error instanceof MailFailure && error.isAboutMail) return
    failuresInARow += 1
    if (failuresInARow < MANY_FAILURES) return
    isFailing = true
    successPeriod = undefined
  }

  return {
    ...mailer,
    async send(mail) {
      try {
        await mailer.send(mail)
      } catch (error) {
        countFailure(error)
        throw error
      }
      countSuccess()
    },
    failsAlways() {
      if (successPeriod !== undefined && findPeriod() > successPeriod) {
        isFailing = false
        successPeriod = undefined
      }
      return isFailing
    },
  }
}
