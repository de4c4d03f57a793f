import type { FastifyBaseLogger } from 'fastify'
import { pino } from 'pino'
import { type Config, readConfig } from '../config.ts'
import type { Bootstrap } from '../context.ts'
import { connect, type Database } from '../db/sql.ts'
import { runningEmbedded, startEmbedded } from '../embedded/server.ts'
import { keptSecret } from '../secrets.ts'

/**
 * Finds the database and the secrets: those of the settings, else an embedded PostgreSQL and secrets made and kept in the
 * data folder.
 * @param opened gets what stops a database that was started here
 * @param onRunning is called once when there is nothing left to do but wait for the database
 */
export async function resolveDatabase(
  config: Config,
  log: FastifyBaseLogger,
  opened: (() => Promise<unknown>)[],
  onRunning: () => void,
): Promise<Bootstrap & { intakeKeyPath: string | undefined }> {
  const { secrets, intakeKeyPath } = await resolveSecrets(config)
  if (config.databaseUrl) {
    onRunning()
    return { ...secrets, databaseUrl: config.databaseUrl, intakeKeyPath }
  }
  const embedded = await startEmbedded(config.dataDir, log, { onRunning })
  opened.push(embedded.stop)
  return { ...secrets, databaseUrl: embedded.url, intakeKeyPath }
}

/**
 * Runs a command's work on the database of the settings: an external one, or the embedded one of a running service, or an
 * embedded one that is started for the moment.
 */
export async function withDatabaseUrl<T>(work: (url: string, config: Config) => Promise<T>): Promise<T> {
  const config = readConfig(process.env)
  const running = config.databaseUrl ?? (await runningEmbedded(config.dataDir))
  if (running) return work(running, config)
  const embedded = await startEmbedded(config.dataDir, pino({ level: 'silent' }))
  try {
    return await work(embedded.url, config)
  } finally {
    await embedded.stop()
  }
}

/** The same with a connection to it. */
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

/** Those of the settings, else those made and kept in the data folder. */
export async function resolveSecrets({ jwtSecrets, intakeKeys, dataDir }: Config) {
  const jwt = jwtSecrets.length > 0 ? jwtSecrets : [(await keptSecret(dataDir, 'jwt-secret')).secret]
  if (intakeKeys.length > 0) return { secrets: { jwtSecrets: jwt, intakeKeys }, intakeKeyPath: undefined }
  const kept = await keptSecret(dataDir, 'intake-key')
  return { secrets: { jwtSecrets: jwt, intakeKeys: [kept.secret] }, intakeKeyPath: kept.path }
}
