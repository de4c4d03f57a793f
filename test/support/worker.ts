// Runs a worker in a separate process, for tests that kill the worker. Usage:
// node test/support/worker.ts DATABASE_URL SMTP_URL
import { pino } from 'pino'
import { sendCode } from '../../src/auth/send-code.ts'
import { connect } from '../../src/db/sql.ts'
import { createSmtpMailer } from '../../src/mail/smtp.ts'
import { startWorkers } from '../../src/outbox/workers.ts'
import { FROM, KEYS, mailChannel, NOW, TEXTS } from './outbox.ts'

const [databaseUrl, smtpUrl] = process.argv.slice(2) as [string, string]
const log = pino({ level: 'warn' })
const now = () => NOW
const mailer = createSmtpMailer(smtpUrl, { from: FROM })
startWorkers(
  databaseUrl,
  [mailChannel(sendCode({ sql: connect(databaseUrl), mailer, keys: KEYS, now, log, texts: TEXTS }))],
  {
    log,
    now,
    observe: () => {},
  },
)
