import { readFileSync } from 'node:fs'
import type { FastifyBaseLogger } from 'fastify'
import type { Config } from '../config.ts'
import { SETTINGS } from '../settings.ts'

/**
 * Says where to look: in plain lines on a terminal, else in one line of the log. Only a terminal is shown the intake key;
 * a log is kept and shipped about, so it gets the name of the file that holds it.
 */
export function showAddresses(
  log: FastifyBaseLogger,
  config: Config,
  address: string,
  intakeKeyPath: string | undefined,
): void {
  if (config.smtpUrl && config.mailFrom === SETTINGS.MAIL_FROM.default) {
    log.warn('MAIL_FROM is not set: most mail servers refuse mails from no-reply@localhost')
  }
  const places = {
    address,
    ...(config.serves && { reference: `${address}/docs` }),
    ...(!config.smtpUrl && { mailbox: `${address}/dev/mailbox` }),
    ...(intakeKeyPath && { intakeKeyFile: intakeKeyPath }),
  }
  if (!process.stdout.isTTY) {
    log.info(places, 'listening')
    return
  }
  const lines = [
    `Courtside listens at ${address}`,
    places.reference && `  API reference  ${places.reference}`,
    places.mailbox && `  Mailbox        ${places.mailbox}`,
    intakeKeyPath && `  Intake key     ${readFileSync(intakeKeyPath, 'utf8').trim()}`,
  ]
  console.log(`\n${lines.filter(Boolean).join('\n')}\n`)
}
