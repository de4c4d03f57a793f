import { readFileSync } from 'node:fs'
import type { FastifyBaseLogger } from 'fastify'
import type { Config } from '../config.ts'
import { SETTINGS } from '../settings.ts'

/**
 * Shows the addresses of the service. On a terminal, prints plain lines that include the intake key. Otherwise writes
 * one log line. The log line does not contain the key, because logs are often stored or sent to other systems. Instead,
 * the log line contains the path of the file in which the key is stored.
 */
export function showAddresses(
  log: FastifyBaseLogger,
  config: Config,
  address: string,
  intakeKeyPath: string | undefined,
): void {
  if (config.mailServer && config.mailFrom === SETTINGS.MAIL_FROM.default) {
    log.warn('MAIL_FROM is not set: most mail servers refuse mails from no-reply@localhost')
  }
  const addresses = {
    address,
    ...(config.serves && { reference: `${address}/docs` }),
    ...(!config.mailServer && { mailbox: `${address}/dev/mailbox` }),
    ...(intakeKeyPath && { intakeKeyFile: intakeKeyPath }),
  }
  if (!process.stdout.isTTY) {
    log.info(addresses, 'listening')
    return
  }
  const lines = [
    `Courtside listens at ${address}`,
    addresses.reference && `  API reference  ${addresses.reference}`,
    addresses.mailbox && `  Mailbox        ${addresses.mailbox}`,
    intakeKeyPath && `  Intake key     ${readFileSync(intakeKeyPath, 'utf8').trim()}`,
  ]
  console.log(`\n${lines.filter(Boolean).join('\n')}\n`)
}
