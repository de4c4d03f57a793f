import { readFileSync } from 'node:fs'
import type { FastifyBaseLogger } from 'fastify'
import type { Config } from '../config.ts'
import { SETTINGS } from '../settings.ts'

/**
 * Shows the addresses of the service. On a terminal, prints plain lines that include the intake key. Otherwise writes
 * one log line. The log line does not contain the intake key, because logs are often stored or sent to other systems.
 * Instead, the log line contains the path of the file in which the key is stored. The addresses of the page and of the
 * development mailbox contain the key of this mailbox, also in the log line.
 */
export function showAddresses(
  log: FastifyBaseLogger,
  config: Config,
  address: string,
  { intakeKeyPath, mailboxKey }: { intakeKeyPath: string | undefined; mailboxKey?: string | undefined },
): void {
  if (config.mailServer && config.mailFrom === SETTINGS.MAIL_FROM.default) {
    log.warn('MAIL_FROM is not set: most mail servers refuse mails from no-reply@localhost')
  }
  const addresses = {
    address,
    // A browser sends no fragment to a server, so the key does not reach the logs of a proxy.
    ...(config.serves && config.web && { page: `${address}/${mailboxKey ? `#mailbox=${mailboxKey}` : ''}` }),
    ...(config.serves && { reference: `${address}/docs` }),
    ...(mailboxKey && { mailbox: `${address}/dev/mailbox?key=${mailboxKey}` }),
    ...(intakeKeyPath && { intakeKeyFile: intakeKeyPath }),
  }
  if (!process.stdout.isTTY) {
    log.info(addresses, 'listening')
    return
  }
  const lines = [
    `Courtside listens at ${address}`,
    addresses.page && `  Page           ${addresses.page}`,
    addresses.reference && `  API reference  ${addresses.reference}`,
    addresses.mailbox && `  Mailbox        ${addresses.mailbox}`,
    intakeKeyPath && `  Intake key     ${readFileSync(intakeKeyPath, 'utf8').trim()}`,
  ]
  console.log(`\n${lines.filter(Boolean).join('\n')}\n`)
}
