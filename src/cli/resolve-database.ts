import { once } from 'node:events'
import { constants } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import { pino } from 'pino'
import { type Config, readConfig } from '../config.ts'
import type { Bootstrap } from '../context.ts'
import { isUndefinedTable } from '../db/errors.ts'
import { findSchema } from '../db/own-schema.ts'
import { connect, type Database } from '../db/sql.ts'
import { openEmbedded, startEmbedded } from '../embedded/server.ts'
import { vapidKey } from '../reach-settings.ts'
import { loadOrCreateSecret, newSecret, type StoredSecret } from '../secrets.ts'
import { watchStopSignals } from './stop-signals.ts'

/** After a signal to stop, a command has this time to notice that its database has stopped. */
const FAILURE_MS = 250

/** Loads the secret with this name from the data folder, or creates it. */
type Load = (name: string) => Promise<StoredSecret>

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
  const load = (name: string) => loadOrCreateSecret(config.dataDir, name, sentence => log.warn(sentence))
  const { secrets, intakeKeyPath } = await resolveSecrets(config, load)
  const mailboxKey = await resolveMailboxKey(config, load)
  if (config.databaseUrl) {
    onWaiting()
    return { ...secrets, mailboxKey, databaseUrl: config.databaseUrl, intakeKeyPath }
  }
  const embedded = await startEmbedded(config.dataDir, log, { onWaiting })
  closers.push(embedded.stop)
  return { ...secrets, mailboxKey, databaseUrl: embedded.url, embeddedRestarts: embedded.restarts, intakeKeyPath }
}

/**
 * Runs a command's work on the external database, or on the embedded database if DATABASE_URL is empty. If the embedded
 * database is not running, this function starts it before the work and stops it afterwards. A signal to stop stops the
 * database too, and ends the process with the exit code that shells use: 128 and the number of the signal.
 * @param options.mayCreate whether the function may create an embedded database that does not exist yet
 */
export async function withDatabaseUrl<T>(
  work: (url: string, config: Config) => Promise<T>,
  options = { mayCreate: false },
): Promise<T> {
  const config = readConfig(process.env)
  const run = async (url: string) => work((await findSchema(url, config.databaseSchema)).url, config)
  if (config.databaseUrl) return run(config.databaseUrl)
  const stopping = watchStopSignals()
  const aborted = once(stopping, 'abort')
  const embedded = await openEmbedded(config.dataDir, pino({ level: 'error' }, pino.destination(2)), options)
  const result = stopping.aborted ? undefined : run(embedded.url)
  try {
    await Promise.race([result, aborted])
  } finally {
    await embedded.stop()
  }
  if (!stopping.aborted) return result!
  // Without its database, the work fails soon, and then writes its audit line. But it may also wait for an input.
  await Promise.race([result, delay(FAILURE_MS)]).catch(() => {})
  process.exit(128 + constants.signals[stopping.reason as NodeJS.Signals])
}

/** Runs a command's work as `withDatabaseUrl` does, but passes a connection to the database instead of its URL. */
export async function withDatabase<T>(work: (sql: Database, config: Config) => Promise<T>): Promise<T> {
  return withDatabaseUrl(async (url, config) => {
    const sql = connect(url, { max: 1, name: 'courtside-command' })
    try {
      return await work(sql, config)
    } catch (error) {
      if (!isUndefinedTable(error)) throw error
      const remedy = 'Start the service, or run "npm run courtside -- migrate".'
      throw new Error(`The database is not migrated yet. ${remedy}`, { cause: error })
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
async function resolveSecrets(config: Config, load: Load) {
  const { jwtSecrets, intakeKeys } = config
  const vapidKeys = await resolveVapidKeys(config, load)
  const jwt = jwtSecrets.length > 0 ? jwtSecrets : [(await load('jwt-secret')).secret]
  if (intakeKeys.length > 0) return { secrets: { jwtSecrets: jwt, intakeKeys, vapidKeys }, intakeKeyPath: undefined }
  const stored = await load('intake-key')
  return { secrets: { jwtSecrets: jwt, intakeKeys: [stored.secret], vapidKeys }, intakeKeyPath: stored.path }
}

/** Returns no key for an external database without VAPID_PRIVATE_KEY, because all nodes need the same key. */
async function resolveVapidKeys({ vapidPrivateKeys, databaseUrl }: Config, load: Load): Promise<readonly string[]> {
  if (vapidPrivateKeys.length > 0 || databaseUrl) return vapidPrivateKeys
  const { secret, path } = await load('vapid-key')
  try {
    return [vapidKey(secret)]
  } catch (error) {
    throw new Error(`${path} ${(error as Error).message}. Delete the file. The next startup creates a new key.`)
  }
}

/**
 * Returns the key of the development mailbox. With the embedded database, the key stays the same over restarts, so an
 * open page keeps working. Returns undefined if a mail server is configured.
 */
async function resolveMailboxKey({ mailServer, databaseUrl }: Config, load: Load): Promise<string | undefined> {
  if (mailServer) return undefined
  return databaseUrl ? newSecret() : (await load('mailbox-key')).secret
}
