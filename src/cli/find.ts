import type { FastifyBaseLogger } from 'fastify'
import type { Config } from '../config.ts'
import type { Found } from '../context.ts'
import { runningEmbedded, startEmbedded } from '../db/embedded.ts'
import { keptSecret } from '../secrets.ts'

/**
 * Finds the database and the secrets: those of the settings, else an embedded PostgreSQL and secrets made and kept in the
 * data folder.
 * @param opened gets what stops a database that was started here
 */
export async function find(
  config: Config,
  log: FastifyBaseLogger,
  opened: (() => Promise<unknown>)[],
): Promise<Found & { intakeKeyPath: string | undefined }> {
  const { secrets, intakeKeyPath } = await findSecrets(config)
  if (config.databaseUrl) return { ...secrets, databaseUrl: config.databaseUrl, intakeKeyPath }
  const embedded = await startEmbedded(config.dataDir, log)
  opened.push(embedded.stop)
  return { ...secrets, databaseUrl: embedded.url, intakeKeyPath }
}

/** For commands beside a running service: its database, or an embedded one that is started for the moment. */
export async function findDatabase(
  config: Config,
  log: FastifyBaseLogger,
): Promise<{ url: string; close(): Promise<void> }> {
  const running = config.databaseUrl ?? (await runningEmbedded(config.dataDir))
  if (running) return { url: running, close: async () => {} }
  const embedded = await startEmbedded(config.dataDir, log)
  return { url: embedded.url, close: embedded.stop }
}

async function findSecrets({ jwtSecrets, intakeKeys, dataDir }: Config) {
  const jwt = jwtSecrets.length > 0 ? jwtSecrets : [(await keptSecret(dataDir, 'jwt-secret')).secret]
  if (intakeKeys.length > 0) return { secrets: { jwtSecrets: jwt, intakeKeys }, intakeKeyPath: undefined }
  const kept = await keptSecret(dataDir, 'intake-key')
  return { secrets: { jwtSecrets: jwt, intakeKeys: [kept.secret] }, intakeKeyPath: kept.path }
}
