import type { FastifyBaseLogger } from 'fastify'
import { pino } from 'pino'
import { type Config, readConfig } from '../config.ts'
import type { Bootstrap } from '../context.ts'
import { connect, type Database } from '../db/sql.ts'
import { findRunningEmbedded, startEmbedded } from '../embedded/server.ts'
import { loadOrCreateSecret, newSecret } from '../secrets.ts'

/**
 * Finds the database and the secrets. Without DATABASE_URL, starts the embedded PostgreSQL. Secrets that are missing
 * from the settings come from the data folder.
 * @param closers a list. If `resolveDatabase` starts the embedded PostgreSQL, it appends a function that stops
 * PostgreSQL
 * @param onWaiting a callback. `resolveDatabase` calls it at a time when it does nothing except wait for the database
 */
export async function resolveDatabase(
  config: Config,
  log: FastifyBaseLogger,
  closers: (() => Promise<unknown>)[],
  onWaiting: () => void,
): Promise<Bootstrap & { intakeKeyPath: string | undefined }> {
  const { secrets, intakeKeyPath } = await resolveSecrets(config)
  const mailboxKey = await resolveMailboxKey(config)
  if (config.databaseUrl) {
    onWaiting()
    return { ...secrets, mailboxKey, databaseUrl: config.databaseUrl, intakeKeyPath }
  }
  const embedded = await startEmbedded(config.dataDir, log, { onWaiting })
  closers.push(embedded.stop)
  return { ...secrets, mailboxKey, databaseUrl: embedded.url, intakeKeyPath }
}

/**
 * Runs a command's work on the external database, or on the embedded database if DATABASE_URL is empty. If the embedded
 * database is not running, this function starts it before the work and stops it afterwards.
 */
export async function withDatabaseUrl<T>(work: (url: string, config: Config) => Promise<T>): Promise<T> {
  const config = readConfig(process.env)
  const running = config.databaseUrl ?? (await findRunningEmbedded(config.dataDir))
  if (running) return work(running, config)
  const embedded = await startEmbedded(config.dataDir, pino({ level: 'silent' }))
  try {
    return await work(embedded.url, config)
  } finally {
    await embedded.stop()
  }
}

/** Runs a command's work as `withDatabaseUrl` does, but passes a connection to the database instead of its URL. */
export async function withDatabase<T>(work: (sql: Database, config: Config) => Promise<T>): Promise<T> {
  return withDatabaseUrl(async (url, config) => {
    const sql = connect(url, { max: 1, name: 'courtside-command' })
    try {
      return await work(sql, config)
    } finally {
      await sql.close()
    }
  })
}

/**
 * Returns the secrets in the settings. If a setting is empty, returns the secret in the data folder instead. If the
 * data folder does not contain this secret, creates it.
 * @returns the secrets, and the path of the intake key if it is in the data folder
 */
export async function resolveSecrets({ jwtSecrets, intakeKeys, dataDir }: Config) {
  const jwt = jwtSecrets.length > 0 ? jwtSecrets : [(await loadOrCreateSecret(dataDir, 'jwt-secret')).secret]
  if (intakeKeys.length > 0) return { secrets: { jwtSecrets: jwt, intakeKeys }, intakeKeyPath: undefined }
  const stored = await loadOrCreateSecret(dataDir, 'intake-key')
  return { secrets: { jwtSecrets: jwt, intakeKeys: [stored.secret] }, intakeKeyPath: stored.path }
}

/**
 * Returns the key of the development mailbox. With the embedded database, the key stays the same over restarts, so an
 * open page keeps working. Returns undefined if a mail server is configured.
 */
async function resolveMailboxKey({ mailServer, databaseUrl, dataDir }: Config): Promise<string | undefined> {
  if (mailServer) return undefined
  return databaseUrl ? newSecret() : (await loadOrCreateSecret(dataDir, 'mailbox-key')).secret
}
