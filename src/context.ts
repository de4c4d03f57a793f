import type { FastifyBaseLogger, FastifyRequest } from 'fastify'
import type { Config } from './config.ts'
import { type Clock, createClock } from './db/clock.ts'
import { KEY_LOOKUPS } from './db/connection-config.ts'
import { createHints, type Hints } from './db/hints.ts'
import { createListener, type Listener } from './db/listener.ts'
import { connect, connectReads, type Database, type Statements } from './db/sql.ts'
import { createNetworkMatch } from './http/client-address.ts'
import { deriveKeys, type Keys } from './keys.ts'
import { createMailBacklog, type MailBacklog } from './limits/mail-backlog.ts'
import { createNetworks, type Networks } from './limits/network-key.ts'
import { createMailbox, type Mailbox } from './mail/mailbox.ts'
import type { Mailer, Sender } from './mail/mailer.ts'
import { createSmtpMailer } from './mail/smtp.ts'
import { watchMailer } from './mail/watch-mailer.ts'
import { createMetrics, type Expose, type Metrics, NO_METRICS } from './metrics/metrics.ts'
import type { MAIL_SETTINGS } from './settings.ts'

/**
 * The objects that a process shares: connections, keys, mailer, metrics, log and clock. Only routes and their guards
 * receive the whole context. Functions that a route calls take plain arguments.
 */
export type Context = {
  config: Config
  log: FastifyBaseLogger
  /** The time by the clock of the database. */
  now: () => Date
  clock: Clock
  /** Aborts when the process must stop. The process still answers requests for the time in STOP_DELAY. */
  stopping: AbortSignal
  sql: Database
  /** The connections for frequent queries that change no row. They are not among the connections of `sql`. */
  readSql: Statements
  /** Two connections that only the event intake uses. So a burst of events does not delay the requests of users. */
  intakeSql: Database
  /** In a process that serves the API, the app starts this listener. In a worker, the service starts it. */
  listener: Listener
  /** Tells the listeners of all processes what has changed, after the commit of the change. */
  hints: Hints
  mailBacklog: MailBacklog
  keys: Keys
  /** The private keys with which pushes are signed, the newest first. Empty if the service sends no pushes. */
  vapidKeys: readonly string[]
  /** The keyed hashes of the networks of clients. */
  networks: Networks
  /** Returns whether a request comes from one of the networks in SHARED_NETWORKS. */
  isSharedNetwork(request: FastifyRequest): boolean
  intakeKeys: readonly string[]
  mailer: Mailer
  /** Returns whether at least the last five mails of this process failed. */
  mailFails: () => boolean
  /** Undefined if a mail server is configured. Otherwise `mailer` passes its mails to `mailbox`. */
  mailbox: Mailbox | undefined
  metrics: Metrics
  /** Returns the samples for `/metrics`. Undefined if METRICS_TOKEN is not set. */
  exposeMetrics: Expose | undefined
  close(): Promise<void>
}

/** The values that `createContext` needs in addition to the settings: the URL of the database, and the secrets. */
export type Bootstrap = {
  databaseUrl: string
  jwtSecrets: readonly string[]
  intakeKeys: readonly string[]
  /** The private keys for pushes. By default, those of the settings. */
  vapidKeys?: readonly string[]
  /** The key of the development mailbox. By default, the mailbox makes a new key. */
  mailboxKey?: string | undefined
  /** Counts how often the embedded PostgreSQL was started again. Undefined if DATABASE_URL is set. */
  embeddedRestarts?: () => number
}

/** The functions that create mailers. Each key is the mail setting that selects the function. */
const MAILERS: Record<(typeof MAIL_SETTINGS)[number], (value: string, sender: Sender) => Mailer> = {
  SMTP_URL: createSmtpMailer,
}

/** The intake has few connections, so no event may hold one for long because another program has locked its game. */
const INTAKE_LOCK_TIMEOUT_MS = 1_000

const UNOPENED_NETWORK_KEY =
  'no secret in JWT_SECRET opens the stored network key, so this process counts all networks anew; if JWT_SECRET was ' +
  'not replaced on purpose, add the previous secret after the new one'

/**
 * Creates the context of a process. Tests replace the clock or the mailer through `overrides`. Without `stopping`, the
 * process never stops.
 */
export function createContext(
  config: Config,
  log: FastifyBaseLogger,
  bootstrap: Bootstrap,
  overrides: Partial<Pick<Context, 'now' | 'mailer' | 'stopping' | 'hints'>> = {},
): Context {
  const sql = connect(bootstrap.databaseUrl, { connections: config.writeConnections, max: 2, planner: KEY_LOOKUPS })
  const readSql = connectReads(bootstrap.databaseUrl)
  const intakeSql = connect(bootstrap.databaseUrl, {
    max: 2,
    name: 'courtside-intake',
    planner: KEY_LOOKUPS,
    lockTimeoutMs: INTAKE_LOCK_TIMEOUT_MS,
  })
  const hints = createHints(sql, log)
  const listener = createListener(bootstrap.databaseUrl, log)
  const clock = createClock(readSql, log)
  const now = overrides.now ?? clock.now
  const enabledMetrics = config.metricsToken === undefined ? undefined : createMetrics(bootstrap.embeddedRestarts)
  const metrics = enabledMetrics?.metrics ?? NO_METRICS
  const { mailServer, mailFrom, smtpHeloName } = config
  const mailbox = mailServer ? undefined : createMailbox(now, bootstrap.mailboxKey)
  const mailer = watchMailer(
    overrides.mailer ??
      mailbox ??
      MAILERS[mailServer!.setting](mailServer!.value, { from: mailFrom, heloName: smtpHeloName }),
  )
  const keys = deriveKeys(bootstrap.jwtSecrets)
  // A push needs a link. In development, it leads to this process.
  const canLink = config.isDevelopment || Object.values(config.links).some(link => link !== undefined)
  return {
    config,
    log,
    now,
    clock,
    stopping: overrides.stopping ?? new AbortController().signal,
    sql,
    readSql,
    intakeSql,
    listener,
    hints,
    mailBacklog: createMailBacklog({
      sql,
      readSql,
      now,
      log,
      countRefused: metrics.countRefusedMail,
      isServing: config.serves,
    }),
    keys,
    vapidKeys: canLink ? (bootstrap.vapidKeys ?? config.vapidPrivateKeys) : [],
    networks: createNetworks(sql, keys, () => log.error(UNOPENED_NETWORK_KEY)),
    isSharedNetwork: createNetworkMatch(config.sharedNetworks),
    intakeKeys: bootstrap.intakeKeys,
    mailFails: mailer.failsAlways,
    mailbox,
    metrics,
    exposeMetrics: enabledMetrics?.expose,
    close: async () => {
      await Promise.all([hints.close(), listener.close()])
      await Promise.all([sql.close(), readSql.close(), intakeSql.close()])
    },
    ...overrides,
    mailer,
  }
}
