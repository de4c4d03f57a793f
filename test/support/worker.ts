// Runs a worker in a separate process, for tests that kill the worker. Usage:
// node test/support/worker.ts DATABASE_URL SMTP_URL
import { pino } from 'pino'
import { sendCode } from '../../src/auth/code-email.ts'
import { connect } from '../../src/db/sql.ts'
import { startWorker } from '../../src/jobs/queue.ts'
import { createSmtpMailer } from '../../src/mail/smtp.ts'
import { FROM, KEYS, NOW } from './outbox.ts'

const [databaseUrl, smtpUrl] = process.argv.slice(2) as [string, string]
const log = pino({ level: 'warn' })
const mailer = createSmtpMailer(smtpUrl, { from: FROM })
await startWorker(
  databaseUrl,
  { send_code: sendCode({ sql: connect(databaseUrl), mailer, keys: KEYS, now: () => NOW, log }) },
  { log },
)
