import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import { findFolderWarning, prepareDataFolder } from '../data-folder.ts'
import { prepareDatabase, readPassword, writeAccessRules } from './access.ts'
import { createCluster, hasCluster, type Programs } from './cluster.ts'
import { chooseAccount } from './database-user.ts'
import { requireNoEarlierService } from './earlier-service.ts'
import { launch, rotateLog } from './launch.ts'
import { type Owner, readOwner } from './owner.ts'
import { acquireOwnerLock, FolderInUseError, type OwnerLock } from './owner-lock.ts'
import { findEmbeddedPrograms, readMajor } from './programs.ts'
import { buildUrl, isServerListening, requirePrivateSocket } from './socket.ts'
import { supervise } from './supervisor.ts'

const LOG_CHECK_INTERVAL_MS = 10 * 60_000
/** A command waits this long for the database of a service that is starting. */
const SERVICE_START_MS = 10_000

type Options = {
  /** The folder with the programs of another PostgreSQL. By default, the programs that npm installed are used. */
  bin?: string | undefined
  role?: Owner['role']
  /**
   * `startEmbedded` calls this function at a time when it does nothing except wait for the server or for initdb. The
   * caller can use this time for other work.
   */
  onWaiting?: () => void
}

export type Embedded = {
  /** The URL of the database. Its user is no superuser. */
  url: string
  /** The number of times that the server ended by itself and was started again. */
  restarts(): number
  /** Stops the server within 9 s. */
  stop(): Promise<void>
}

/**
 * Starts a PostgreSQL server with its data in `<dataDir>/postgres`. Stops the server that a killed process left running
 * there. Only one process owns the data folder. If the server ends by itself, this process starts it again.
 * @throws FolderInUseError if another running process owns the folder
 * @throws if the server cannot start. The message tells the operator what to do
 */
export async function startEmbedded(
  dataDir: string,
  log: FastifyBaseLogger,
  { bin = findEmbeddedPrograms(), role = 'service', onWaiting = () => {} }: Options = {},
): Promise<Embedded> {
  const folder = await prepareDataFolder(dataDir)
  const lock = await acquireOwnerLock(folder, role, log)
  try {
    const warning = await findFolderWarning(folder)
    if (warning) log.warn(warning)
    const programs = { bin, major: await readMajor(bin), account: await chooseAccount(bin, folder, log) }
    return await startOwned(folder, programs, { lock, log, onWaiting })
  } catch (error) {
    await lock.release()
    throw error
  }
}

/** Starts the server of a data folder that this process owns. */
async function startOwned(
  folder: string,
  programs: Programs,
  { lock, log, onWaiting }: { lock: OwnerLock; log: FastifyBaseLogger; onWaiting: () => void },
): Promise<Embedded> {
  const cluster = join(folder, 'postgres')
  await createCluster(programs, cluster, log, onWaiting)
  await requireNoEarlierService(cluster)
  const known = await readPassword(cluster)
  await writeAccessRules(cluster, { superuser: known === undefined })
  const server = await launch(programs, cluster, { onWaiting })
  const password =
    known ??
    (await prepareDatabase(cluster).catch(async error => {
      await server.stop()
      throw error
    }))
  const supervisor = supervise(server, signal => launch(programs, cluster, { signal }), log)
  const rotation = setInterval(() => void rotateLog(`${cluster}.log`).catch(() => {}), LOG_CHECK_INTERVAL_MS).unref()
  lock.lost.addEventListener('abort', () => {
    log.error({ err: lock.lost.reason }, 'another process has taken the data folder; stopping')
    supervisor.abort()
    // The service stops as after a signal of the operator.
    process.kill(process.pid, 'SIGTERM')
  })
  return {
    url: buildUrl(folder, password),
    restarts: supervisor.restarts,
    async stop() {
      clearInterval(rotation)
      await lock.announceStop()
      await supervisor.stop()
      await lock.release()
    },
  }
}

/** Returns the URL of the embedded database that is running on this data folder, or undefined if none is running. */
export async function findRunningEmbedded(dataDir: string): Promise<string | undefined> {
  const folder = resolve(dataDir)
  if (!(await isServerListening(folder))) return undefined
  await requirePrivateSocket(folder)
  const password = await readPassword(join(folder, 'postgres'))
  return password && buildUrl(folder, password)
}

/**
 * Returns the embedded database for a command. If the service runs, this is the database of the service. Otherwise the
 * function starts the server, and `stop` stops it.
 * @param mayCreate whether the function may create a database that does not exist yet
 * @throws if there is no database and `mayCreate` is false
 */
export async function openEmbedded(
  dataDir: string,
  log: FastifyBaseLogger,
  { mayCreate }: { mayCreate: boolean },
): Promise<Pick<Embedded, 'url' | 'stop'>> {
  const folder = resolve(dataDir)
  const deadline = performance.now() + SERVICE_START_MS
  for (;;) {
    const owner = await readOwner(folder)
    // A command stops its server when it ends, so other commands do not use this server.
    const running = owner?.role === 'service' ? await findRunningEmbedded(folder) : undefined
    if (running) return { url: running, stop: async () => {} }
    try {
      if (!mayCreate && !(await hasCluster(join(folder, 'postgres')))) throw new NoDatabaseError(folder)
      return await startEmbedded(folder, log, { role: 'command' })
    } catch (error) {
      if (!(error instanceof FolderInUseError)) throw error
      // The attempt has already waited for the end of another command.
      if ((await readOwner(folder))?.role === 'command') throw error
      if (performance.now() > deadline) throw new Error(`${error.message} ${UNREACHABLE}`, { cause: error })
    }
    await delay(100)
  }
}

const UNREACHABLE =
  'The database of that process does not answer here. Run the command where that process runs, for example in the ' +
  'same container.'

class NoDatabaseError extends Error {
  constructor(folder: string) {
    super(
      `DATA_DIR: there is no database in ${folder} yet. Start the service, or run "npm run courtside -- migrate" to ` +
        'create one.',
    )
  }
}
