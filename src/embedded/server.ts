import { copyFile, open, stat, truncate } from 'node:fs/promises'
import { createServer } from 'node:net'
import { dirname, join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import { createCluster, readPassword, SUPERUSER } from './cluster.ts'
import { acquireOwnerLock } from './owner-lock.ts'
import { findPostmaster, type Postmaster, removeStaleLockFile, stopPostmaster } from './postmaster.ts'
import { choosePrograms, findEmbeddedPrograms, type Programs } from './programs.ts'

const READY_TIMEOUT_MS = 60_000
const MAX_LOG_BYTES = 5_000_000
const LOG_CHECK_INTERVAL_MS = 10 * 60_000

// Durability stays at PostgreSQL's defaults. Memory is small, because the server shares the machine with this process.
// The log says how the server runs, but contains no failed statements and no values, because those contain e-mail
// addresses.
const SERVER_SETTINGS = {
  listen_addresses: '127.0.0.1',
  // No socket: its path may have 107 bytes at most, and the data folder's path may be longer.
  unix_socket_directories: '',
  shared_buffers: '128MB',
  max_connections: '100',
  max_wal_size: '256MB',
  min_wal_size: '64MB',
  jit: 'off',
  timezone: 'UTC',
  log_timezone: 'UTC',
  // `log` is more severe than `error` here.
  log_min_messages: 'log',
  log_checkpoints: 'off',
  log_min_error_statement: 'panic',
  log_error_verbosity: 'terse',
}

// Case by Unicode's rules, order by code point. The tables are PostgreSQL's own since 17, so they are the same on every
// platform.
const LOCALE = ['--locale-provider', 'builtin', '--builtin-locale', 'C.UTF-8', '--locale', 'C']
// For the programs of an older PostgreSQL.
const PORTABLE_LOCALE = ['--locale', 'C.UTF-8']

type Options = {
  /** A folder with the programs of another PostgreSQL, instead of the installed ones. */
  bin?: string | undefined
  settings?: Record<string, string>
  /** Called when the start only waits for the server or for initdb, so the caller can do other work meanwhile. */
  onWaiting?: () => void
}

/**
 * Starts a real PostgreSQL with its data under `<dataDir>/postgres`, or adopts the server that a killed process left
 * running there. One process owns the server, by an advisory lock that PostgreSQL frees when that process ends.
 * @returns the database's URL, and `stop`, which stops the server within 9 s
 * @throws when another running process owns the server, or when it cannot start; the message says what to do
 */
export async function startEmbedded(
  dataDir: string,
  log: FastifyBaseLogger,
  { bin, settings = {}, onWaiting = () => {} }: Options = {},
): Promise<{ url: string; stop(): Promise<void> }> {
  const folder = resolve(dataDir)
  const cluster = join(folder, 'postgres')
  const logPath = join(folder, 'postgres.log')
  const programs = await choosePrograms(bin ?? findEmbeddedPrograms())
  await createCluster(programs, cluster, bin ? PORTABLE_LOCALE : LOCALE, onWaiting)
  const start = async () => {
    await removeStaleLockFile(cluster)
    await rotateLog(logPath)
    const isRunning = await startPostmaster(programs, cluster, logPath, { ...SERVER_SETTINGS, ...settings })
    onWaiting()
    return isRunning
  }
  const password = await readPassword(cluster)
  const { postmaster, url, ownerLock } = await becomeOwner(cluster, password, log, start)
  onWaiting()
  const rotation = setInterval(() => void rotateLog(logPath).catch(() => {}), LOG_CHECK_INTERVAL_MS).unref()
  return {
    url,
    async stop() {
      clearInterval(rotation)
      // The lock ends with the server and not before, so no other process can adopt a server that is about to stop.
      if (ownerLock.release()) await stopPostmaster(cluster, postmaster)
    },
  }
}

/** Returns the URL of the embedded database that runs on this data folder now, or undefined. */
export async function findRunningEmbedded(dataDir: string): Promise<string | undefined> {
  const cluster = join(resolve(dataDir), 'postgres')
  const postmaster = await findPostmaster(cluster)
  return postmaster?.status === 'ready' ? buildUrl(postmaster, await readPassword(cluster)) : undefined
}

/** Starts a cluster for tests: fast, because a crash of the machine may lose its data. @returns a superuser's URL */
export async function startThrowAway(folder: string, bin: string | undefined, log: FastifyBaseLogger) {
  return startEmbedded(folder, log, { bin, settings: { fsync: 'off', max_connections: '200' } })
}

function buildUrl({ port }: Postmaster, password: string): string {
  return `postgres://${SUPERUSER}:${password}@127.0.0.1:${port}/courtside`
}

/** Finds or starts a server and becomes its owner. @throws when another running process owns it */
async function becomeOwner(
  cluster: string,
  password: string,
  log: FastifyBaseLogger,
  start: () => Promise<() => boolean>,
) {
  for (let attempt = 1; ; attempt += 1) {
    const postmaster = await findOrStart(cluster, log, start)
    const url = buildUrl(postmaster, password)
    try {
      return { postmaster, url, ownerLock: await acquireOwnerLock(url, dirname(cluster), log) }
    } catch (error) {
      // The owner was stopping the server: try again, which waits for its end and starts another.
      const now = await findPostmaster(cluster)
      if ((now?.pid === postmaster.pid && now.status === 'ready') || attempt === 5) throw error
    }
  }
}

/** Waits for a server that accepts connections. Starts one if none runs. */
async function findOrStart(
  cluster: string,
  log: FastifyBaseLogger,
  start: () => Promise<() => boolean>,
): Promise<Postmaster> {
  const deadline = performance.now() + READY_TIMEOUT_MS
  let isStartedServerRunning: (() => boolean) | undefined
  let starts = 0
  while (performance.now() < deadline) {
    const postmaster = await findPostmaster(cluster)
    if (postmaster?.status === 'ready') {
      if (!isStartedServerRunning)
        log.info({ pid: postmaster.pid }, 'adopting the embedded database that a killed process left running')
      return postmaster
    }
    if (!postmaster && !isStartedServerRunning?.()) {
      // Another program may have taken the free port, or children of a killed server may still run. Five starts are
      // enough; more would hide another error.
      if (starts === 5) throw new Error(`The embedded database does not start; ${cluster}.log says why.`)
      await delay(starts * 200)
      starts += 1
      isStartedServerRunning = await start()
    }
    await delay(10)
  }
  throw new Error(`The embedded database was not ready within ${READY_TIMEOUT_MS / 1000} s; ${cluster}.log says why.`)
}

/** Starts a server on a free port. @returns whether its process still runs */
async function startPostmaster(
  programs: Programs,
  cluster: string,
  logPath: string,
  settings: Record<string, string>,
): Promise<() => boolean> {
  await programs.giveToDatabaseUser(cluster)
  const output = await open(logPath, 'a', 0o600)
  const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const child = programs.spawn('postgres', ['-D', cluster, '-p', String(await freePort()), ...args], {
    // A separate session: Ctrl-C at the terminal must reach only this process, which then stops the server.
    detached: true,
    stdio: ['ignore', output.fd, output.fd],
  })
  await output.close()
  child.unref()
  // A program that cannot start counts as one that has ended.
  child.on('error', () => {})
  return () => child.pid !== undefined && child.exitCode === null && child.signalCode === null
}

/**
 * Moves a log that has grown to `<path>.1`. It truncates the file in place, because the server keeps appending to it.
 */
async function rotateLog(path: string): Promise<void> {
  const stats = await stat(path).catch(() => undefined)
  if (!stats || stats.size < MAX_LOG_BYTES) return
  await copyFile(path, `${path}.1`)
  await truncate(path)
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((done, fail) => server.once('error', fail).listen(0, '127.0.0.1', done))
  const { port } = server.address() as { port: number }
  await new Promise(done => server.close(done))
  return port
}
