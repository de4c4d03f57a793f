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

// SERVER_SETTINGS contains no durability setting, so PostgreSQL's defaults apply to durability. The server gets little
// memory, because it shares the machine with this process. The server's log reports the state of the server. The log
// contains no failed statements and no values, because values may be e-mail addresses.
const SERVER_SETTINGS = {
  listen_addresses: '127.0.0.1',
  // No Unix socket: the path of a socket is limited to 107 bytes, and the path of the data folder may be longer.
  unix_socket_directories: '',
  shared_buffers: '128MB',
  max_connections: '100',
  max_wal_size: '256MB',
  min_wal_size: '64MB',
  jit: 'off',
  timezone: 'UTC',
  log_timezone: 'UTC',
  // In this setting, `log` is more severe than `error`, so errors of statements are not logged.
  log_min_messages: 'log',
  log_checkpoints: 'off',
  log_min_error_statement: 'panic',
  log_error_verbosity: 'terse',
}

// With this locale, upper and lower case follow Unicode, and strings are sorted by code point. Since version 17 the
// locale is built into PostgreSQL, so it is the same on every platform.
const LOCALE = ['--locale-provider', 'builtin', '--builtin-locale', 'C.UTF-8', '--locale', 'C']
// The locale for the programs of another PostgreSQL, which may be older than version 17.
const PORTABLE_LOCALE = ['--locale', 'C.UTF-8']

type Options = {
  /** The folder with the programs of another PostgreSQL. By default, the programs that npm installed are used. */
  bin?: string | undefined
  settings?: Record<string, string>
  /**
   * `startEmbedded` calls this function at a time when it does nothing except wait for the server or for initdb. The
   * caller can use this time for other work.
   */
  onWaiting?: () => void
}

/**
 * Starts a PostgreSQL server with its data in `<dataDir>/postgres`, or adopts the server that a killed process left
 * running there. Only one process owns the server. The owner holds an advisory lock, which PostgreSQL frees when the
 * owner ends.
 * @returns the URL of the database, and `stop`, which stops the server within 9 s
 * @throws if another running process owns the server
 * @throws if the server cannot start. The message tells the operator what to do
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
      // `release` does not free the advisory lock. PostgreSQL frees it only when the server stops, so no other process
      // can adopt a server that is about to stop.
      if (ownerLock.release()) await stopPostmaster(cluster, postmaster)
    },
  }
}

/** Returns the URL of the embedded database that is running on this data folder, or undefined if none is running. */
export async function findRunningEmbedded(dataDir: string): Promise<string | undefined> {
  const cluster = join(resolve(dataDir), 'postgres')
  const postmaster = await findPostmaster(cluster)
  return postmaster?.status === 'ready' ? buildUrl(postmaster, await readPassword(cluster)) : undefined
}

/**
 * Starts a server for tests. The server is fast, because it does not flush data to disk. A crash of the machine may
 * lose data.
 * @returns the same as `startEmbedded`. The user in the URL is a superuser
 */
export async function startThrowAway(folder: string, bin: string | undefined, log: FastifyBaseLogger) {
  return startEmbedded(folder, log, { bin, settings: { fsync: 'off', max_connections: '200' } })
}

function buildUrl({ port }: Postmaster, password: string): string {
  return `postgres://${SUPERUSER}:${password}@127.0.0.1:${port}/courtside`
}

/** Finds or starts a server and becomes its owner. @throws if another running process owns the server */
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
      // The previous owner may have stopped the server meanwhile. In this case, the next attempt waits until the server
      // is gone, and starts another server.
      const current = await findPostmaster(cluster)
      if ((current?.pid === postmaster.pid && current.status === 'ready') || attempt === 5) throw error
    }
  }
}

/** Waits for a server that accepts connections. Starts a server if none is running. */
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
      // Another program may have taken the port that `freePort` found, or children of a killed server may still run.
      // Five attempts are enough for these two cases. With more attempts, the operator would learn of any other error
      // later.
      if (starts === 5) throw new Error(`The embedded database does not start. See ${cluster}.log for the reason.`)
      await delay(starts * 200)
      starts += 1
      isStartedServerRunning = await start()
    }
    await delay(10)
  }
  throw new Error(
    `The embedded database was not ready within ${READY_TIMEOUT_MS / 1000} s. See ${cluster}.log for the reason.`,
  )
}

/** Starts a server on a free port. @returns a function that tells whether the server process still runs */
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
    // The server runs in a separate session. So Ctrl-C at the terminal reaches only this process, which then stops the
    // server.
    detached: true,
    stdio: ['ignore', output.fd, output.fd],
  })
  await output.close()
  child.unref()
  // If the program cannot start, `pid` is undefined, so the function below returns false.
  child.on('error', () => {})
  return () => child.pid !== undefined && child.exitCode === null && child.signalCode === null
}

/**
 * If a log file is too long, copies it to `<path>.1` and truncates it. This function does not replace the file, because
 * the server keeps appending to the open file.
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
