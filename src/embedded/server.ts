import { copyFile, open, stat, truncate } from 'node:fs/promises'
import { createServer } from 'node:net'
import { dirname, join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import { createCluster, passwordOf, SUPERUSER } from './cluster.ts'
import { acquireOwnerLock } from './owner-lock.ts'
import { clearStaleLock, endPostmaster, findPostmaster, type Postmaster } from './postmaster.ts'
import { embeddedPrograms, findPrograms, type Programs } from './programs.ts'

const READY_MS = 60_000
const LOG_BYTES = 5_000_000
const LOG_CHECK_MS = 10 * 60_000

// Durable as always; small, since it shares a machine with us. Its log tells how it fares; failed statements and their values
// stay out of it: they hold addresses.
const SETTINGS = {
  listen_addresses: '127.0.0.1',
  // A socket's path may be 107 bytes long; a data folder's is as long as it is.
  unix_socket_directories: '',
  shared_buffers: '128MB',
  max_connections: '100',
  max_wal_size: '256MB',
  min_wal_size: '64MB',
  jit: 'off',
  timezone: 'UTC',
  log_timezone: 'UTC',
  // "log" ranks above "error" here.
  log_min_messages: 'log',
  log_checkpoints: 'off',
  log_min_error_statement: 'panic',
  log_error_verbosity: 'terse',
}

// Case by Unicode's rules, order by code point; PostgreSQL's own tables since 17, so the same on every platform.
const LOCALE = ['--locale-provider', 'builtin', '--builtin-locale', 'C.UTF-8', '--locale', 'C']
const LOCALE_ELSEWHERE = ['--locale', 'C.UTF-8']

type Options = {
  /** A folder with the programs of another PostgreSQL. */
  bin?: string | undefined
  settings?: Record<string, string>
  /** Called when there is nothing to do but wait, for the server or for what makes its cluster: time for other work. */
  onRunning?: () => void
}

/**
 * Starts a real PostgreSQL with its data under `<dataDir>/postgres`, or adopts the one that a killed process left running
 * there. One process owns it, by a lock that PostgreSQL itself holds for it and drops when it dies.
 * @returns its URL, and `stop`, which ends it within some seconds
 * @throws when another living process owns it, or it cannot be started, with what to do
 */
export async function startEmbedded(
  dataDir: string,
  log: FastifyBaseLogger,
  { bin, settings = {}, onRunning = () => {} }: Options = {},
): Promise<{ url: string; stop(): Promise<void> }> {
  const folder = resolve(dataDir)
  const cluster = join(folder, 'postgres')
  const logPath = join(folder, 'postgres.log')
  const programs = await findPrograms(bin ?? embeddedPrograms())
  await createCluster(programs, cluster, bin ? LOCALE_ELSEWHERE : LOCALE, onRunning)
  const start = async () => {
    await clearStaleLock(cluster)
    await trim(logPath)
    const stillRuns = await startPostmaster(programs, cluster, logPath, { ...SETTINGS, ...settings })
    onRunning()
    return stillRuns
  }
  const password = await passwordOf(cluster)
  const { postmaster, url, ownership } = await owned(cluster, password, log, start)
  onRunning()
  const trimming = setInterval(() => void trim(logPath).catch(() => {}), LOG_CHECK_MS).unref()
  return {
    url,
    async stop() {
      clearInterval(trimming)
      // Our lock ends with the server, not before: nobody can adopt one that is about to be ended.
      if (ownership.release()) await endPostmaster(cluster, postmaster)
    },
  }
}

/** The URL of the embedded database that runs on this data folder now, or undefined. */
export async function runningEmbedded(dataDir: string): Promise<string | undefined> {
  const cluster = join(resolve(dataDir), 'postgres')
  const postmaster = await findPostmaster(cluster)
  return postmaster?.status === 'ready' ? urlOf(postmaster, await passwordOf(cluster)) : undefined
}

/** A cluster for tests: quick, and lost with the machine. @returns a superuser's URL */
export async function startThrowAway(folder: string, bin: string | undefined, log: FastifyBaseLogger) {
  return startEmbedded(folder, log, { bin, settings: { fsync: 'off', max_connections: '200' } })
}

function urlOf({ port }: Postmaster, password: string): string {
  return `postgres://${SUPERUSER}:${password}@127.0.0.1:${port}/courtside`
}

/** Finds or starts a server and becomes its owner. */
async function owned(cluster: string, password: string, log: FastifyBaseLogger, start: () => Promise<() => boolean>) {
  for (let attempt = 1; ; attempt += 1) {
    const postmaster = await running(cluster, log, start)
    const url = urlOf(postmaster, password)
    try {
      return { postmaster, url, ownership: await acquireOwnerLock(url, dirname(cluster), log) }
    } catch (error) {
      // Its owner was just ending it: wait for that, and start another.
      const now = await findPostmaster(cluster)
      if ((now?.pid === postmaster.pid && now.status === 'ready') || attempt === 5) throw error
    }
  }
}

/** Waits for a postmaster that accepts connections, starting one where none runs. */
async function running(
  cluster: string,
  log: FastifyBaseLogger,
  start: () => Promise<() => boolean>,
): Promise<Postmaster> {
  const deadline = performance.now() + READY_MS
  let startedStillRuns: (() => boolean) | undefined
  let starts = 0
  while (performance.now() < deadline) {
    const postmaster = await findPostmaster(cluster)
    if (postmaster?.status === 'ready') {
      if (!startedStillRuns) log.info({ pid: postmaster.pid }, 'adopting the embedded database that was left running')
      return postmaster
    }
    if (!postmaster && !startedStillRuns?.()) {
      // The port that was free may be taken by now, or the children of a killed server not all gone: a few tries are enough,
      // and more would hide another fault.
      if (starts === 5) throw new Error(`The embedded database does not start; ${cluster}.log says why.`)
      await delay(starts * 200)
      starts += 1
      startedStillRuns = await start()
    }
    await delay(10)
  }
  throw new Error(`The embedded database was not ready within ${READY_MS / 1000} s; ${cluster}.log says why.`)
}

async function startPostmaster(
  programs: Programs,
  cluster: string,
  logPath: string,
  settings: Record<string, string>,
): Promise<() => boolean> {
  await programs.handOver(cluster)
  const output = await open(logPath, 'a', 0o600)
  const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const child = programs.spawn('postgres', ['-D', cluster, '-p', String(await freePort()), ...args], {
    // In a session of its own: a Ctrl-C at the terminal must reach us alone, who then stop it in good order.
    detached: true,
    stdio: ['ignore', output.fd, output.fd],
  })
  await output.close()
  child.unref()
  // A program that cannot be started at all is seen as one that has ended.
  child.on('error', () => {})
  return () => child.pid !== undefined && child.exitCode === null && child.signalCode === null
}

/** Keeps the log, and the one before, below a size. It is emptied in place: the server goes on appending to the same file. */
async function trim(path: string): Promise<void> {
  const stats = await stat(path).catch(() => undefined)
  if (!stats || stats.size < LOG_BYTES) return
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
