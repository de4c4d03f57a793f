import type { FastifyBaseLogger } from 'fastify'
import type { Config } from './config.ts'
import { KEY_LOOKUPS } from './db/connection.ts'
import { createListener, type Listener } from './db/listener.ts'
import { connect, connectReads, type Database, type Statements } from './db/sql.ts'
import { deriveKeys, type Keys } from './keys.ts'
import { createMailbox, type Mailbox } from './mail/mailbox.ts'
import type { Mailer } from './mail/mailer.ts'
import { createSmtpMailer } from './mail/smtp.ts'
import { createMetrics, type Expose, type Metrics, NO_METRICS } from './metrics/metrics.ts'

/** Everything a process holds open, and the clock. It stops at the route: what lies below takes plain arguments. */
export type Context = {
  config: Config
  log: FastifyBaseLogger
  now: () => Date
  sql: Database
  /** For what people ask all day, and changes nothing. */
  readSql: Statements
  /** The intake's own two connections: however much is reported at once, people's requests don't wait behind it. */
  intakeSql: Database
  /** Set in a process that serves. It listens once the app is ready. */
  listener: Listener | undefined
  keys: Keys
  intakeKeys: readonly string[]
  mailer: Mailer
  /** Set in development only; it is the mailer then. */
  mailbox: Mailbox | undefined
  metrics: Metrics
  /** Set where METRICS_TOKEN is. */
  exposeMetrics: Expose | undefined
  close(): Promise<void>
}

/** What a process has found out before it can be composed: where its database is, and its secrets. */
export type Bootstrap = { databaseUrl: string; jwtSecrets: readonly string[]; intakeKeys: readonly string[] }

/** Composes a process by hand, once. `overrides` are the only seam for tests. */
export function createContext(
  config: Config,
  log: FastifyBaseLogger,
  found: Bootstrap,
  overrides: Partial<Pick<Context, 'now' | 'mailer'>> = {},
): Context {
  const sql = connect(found.databaseUrl, { max: 2, planner: KEY_LOOKUPS })
  const readSql = connectReads(found.databaseUrl)
  const intakeSql = connect(found.databaseUrl, { max: 2, name: 'courtside-intake', planner: KEY_LOOKUPS })
  const listener = config.serves ? createListener(found.databaseUrl, log) : undefined
  const now = overrides.now ?? (() => new Date())
  const counted = config.metricsToken === undefined ? undefined : createMetrics()
  const mailbox = config.smtpUrl ? undefined : createMailbox(now)
  return {
    config,
    log,
    now,
    sql,
    readSql,
    intakeSql,
    listener,
    keys: deriveKeys(found.jwtSecrets),
    intakeKeys: found.intakeKeys,
    mailer: mailbox ?? createSmtpMailer(config.smtpUrl!, config.mailFrom),
    mailbox,
    metrics: counted?.metrics ?? NO_METRICS,
    exposeMetrics: counted?.expose,
    close: async () => {
      await listener?.close()
      await Promise.all([sql.close(), readSql.close(), intakeSql.close()])
    },
    ...overrides,
  }
}
