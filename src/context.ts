import type { FastifyBaseLogger } from 'fastify'
import type { Config } from './config.ts'
import { KEY_LOOKUPS } from './db/connection-config.ts'
import { createListener, type Listener } from './db/listener.ts'
import { connect, connectReads, type Database, type Statements } from './db/sql.ts'
import { deriveKeys, type Keys } from './keys.ts'
import { createMailbox, type Mailbox } from './mail/mailbox.ts'
import type { Mailer } from './mail/mailer.ts'
import { createSmtpMailer } from './mail/smtp.ts'
import { createMetrics, type Expose, type Metrics, NO_METRICS } from './metrics/metrics.ts'
import type { MAIL_SETTINGS } from './settings.ts'

/**
 * Everything that a process keeps open, and its clock. Only routes take it: functions below a route take plain
 * arguments.
 */
export type Context = {
  config: Config
  log: FastifyBaseLogger
  now: () => Date
  sql: Database
  /** Connections for the frequent reads of users. */
  readSql: Statements
  /** Two separate connections for the event intake, so users' requests do not wait behind a burst of events. */
  intakeSql: Database
  /** Set in a process that serves. The app starts it. */
  listener: Listener | undefined
  keys: Keys
  intakeKeys: readonly string[]
  mailer: Mailer
  /** Set in development only. It is then also the mailer. */
  mailbox: Mailbox | undefined
  metrics: Metrics
  /** Set if METRICS_TOKEN is set. */
  exposeMetrics: Expose | undefined
  close(): Promise<void>
}

/** What a process must know before `createContext`: the URL of its database, and its secrets. */
export type Bootstrap = { databaseUrl: string; jwtSecrets: readonly string[]; intakeKeys: readonly string[] }

/** The mailer of each mail setting. */
const MAILERS: Record<(typeof MAIL_SETTINGS)[number], (value: string, from: string) => Mailer> = {
  SMTP_URL: createSmtpMailer,
}

/** Composes the process. Tests replace parts through `overrides` only. */
export function createContext(
  config: Config,
  log: FastifyBaseLogger,
  bootstrap: Bootstrap,
  overrides: Partial<Pick<Context, 'now' | 'mailer'>> = {},
): Context {
  const sql = connect(bootstrap.databaseUrl, { max: 2, planner: KEY_LOOKUPS })
  const readSql = connectReads(bootstrap.databaseUrl)
  const intakeSql = connect(bootstrap.databaseUrl, { max: 2, name: 'courtside-intake', planner: KEY_LOOKUPS })
  const listener = config.serves ? createListener(bootstrap.databaseUrl, log) : undefined
  const now = overrides.now ?? (() => new Date())
  const collected = config.metricsToken === undefined ? undefined : createMetrics()
  const { mailServer, mailFrom } = config
  const mailbox = mailServer ? undefined : createMailbox(now)
  return {
    config,
    log,
    now,
    sql,
    readSql,
    intakeSql,
    listener,
    keys: deriveKeys(bootstrap.jwtSecrets),
    intakeKeys: bootstrap.intakeKeys,
    mailer: mailbox ?? MAILERS[mailServer!.setting](mailServer!.value, mailFrom),
    mailbox,
    metrics: collected?.metrics ?? NO_METRICS,
    exposeMetrics: collected?.expose,
    close: async () => {
      await listener?.close()
      await Promise.all([sql.close(), readSql.close(), intakeSql.close()])
    },
    ...overrides,
  }
}
