import { mkdir, mkdtemp, open, readFile, rename, rm, stat } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import { keptSecret } from '../secrets.ts'
import { type Ownership, own } from './ownership.ts'
import { findPostmaster, isAlive, type Postmaster } from './postmaster.ts'
import { embeddedPrograms, findPrograms, type Programs } from './programs.ts'

const SUPERUSER = 'courtside'
const READY_MS = 60_000
const LOG_BYTES = 5_000_000

// Durable as always; small, since it shares a machine with us. Statements and values of failed statements stay out of its log:
// they hold addresses.
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
  log_min_messages: 'fatal',
  log_min_error_statement: 'panic',
  log_error_verbosity: 'terse',
}

type Options = {
  /** A folder with the programs of another PostgreSQL. */
  bin?: string | undefined
  settings?: Record<string, string>
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
  { bin, settings = {} }: Options = {},
): Promise<{ url: string; stop(): Promise<void> }> {
  const folder = resolve(dataDir)
  const { secret, path } = await keptSecret(folder, 'postgres-password')
  const programs = await findPrograms(bin ?? embeddedPrograms())
  const cluster = join(folder, 'postgres')
  await createCluster(programs, cluster, path)
  const postmaster = await running(cluster, log, () => startPostmaster(programs, folder, { ...SETTINGS, ...settings }))
  const url = urlOf(postmaster, secret)
  const ownership = await own(url, folder, log)
  return { url, stop: () => stop(postmaster, ownership) }
}

/** The URL of the embedded database that runs on this data folder now, or undefined. */
export async function runningEmbedded(dataDir: string): Promise<string | undefined> {
  const folder = resolve(dataDir)
  const postmaster = await findPostmaster(join(folder, 'postgres'))
  if (postmaster?.status !== 'ready') return undefined
  return urlOf(postmaster, (await keptSecret(folder, 'postgres-password')).secret)
}

/** A cluster for tests: quick, and lost with the machine. @returns a superuser's URL */
export async function startThrowAway(folder: string, bin: string | undefined, log: FastifyBaseLogger) {
  return startEmbedded(folder, log, { bin, settings: { fsync: 'off', max_connections: '200' } })
}

function urlOf({ port }: Postmaster, password: string): string {
  return `postgres://${SUPERUSER}:${password}@127.0.0.1:${port}/courtside`
}

/** Made under another name and moved into place whole, so that an interruption leaves nothing half done. */
async function createCluster(programs: Programs, cluster: string, passwordPath: string): Promise<void> {
  if (await exists(cluster)) return
  const draft = await mkdtemp(`${cluster}-`)
  await programs.handOver(draft)
  const password = await readable(programs, passwordPath, draft)
  try {
    await programs.run('initdb', [
      ...['--pgdata', join(draft, 'cluster'), '--username', SUPERUSER, '--pwfile', password],
      // Our texts are sorted nowhere; this locale is the one that every platform has.
      ...['--auth', 'scram-sha-256', '--encoding', 'UTF8', '--locale', 'C', '--no-instructions'],
    ])
    await rename(join(draft, 'cluster'), cluster).catch(error => {
      // Another process was quicker.
      if (!['ENOTEMPTY', 'EEXIST'].includes(error.code)) throw error
    })
  } finally {
    await rm(draft, { recursive: true, force: true })
  }
}

/** A copy of the password that the user of the programs may read; it goes with the draft. */
async function readable(programs: Programs, passwordPath: string, draft: string): Promise<string> {
  const folder = join(draft, 'password')
  await mkdir(folder, { mode: 0o700 })
  const path = join(folder, 'file')
  const file = await open(path, 'wx', 0o600)
  await file.writeFile(await readFile(passwordPath))
  await file.close()
  await programs.handOver(folder)
  return path
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
      // The port that was free may be taken by now; a few tries are enough, and more would hide another fault.
      if (starts === 5) throw new Error(`The embedded database does not start; ${cluster}.log says why.`)
      starts += 1
      startedStillRuns = await start()
    }
    await delay(10)
  }
  throw new Error(`The embedded database was not ready within ${READY_MS / 1000} s; ${cluster}.log says why.`)
}

async function startPostmaster(programs: Programs, folder: string, settings: Record<string, string>) {
  const cluster = join(folder, 'postgres')
  const output = await open(await rotated(join(folder, 'postgres.log')), 'a', 0o600)
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

async function rotated(path: string): Promise<string> {
  const size = await stat(path).then(
    stats => stats.size,
    () => 0,
  )
  if (size > LOG_BYTES) await rename(path, `${path}.1`)
  return path
}

async function stop({ pid }: Postmaster, ownership: Ownership): Promise<void> {
  await ownership.release()
  // Fast: sessions are ended, nothing is lost. Immediate: as after a crash, with recovery at the next start.
  for (const signal of ['SIGINT', 'SIGQUIT', 'SIGKILL'] as const) {
    if (!isAlive(pid)) return
    process.kill(pid, signal)
    for (let waited = 0; waited < 4_000 && isAlive(pid); waited += 10) await delay(10)
  }
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((done, fail) => server.once('error', fail).listen(0, '127.0.0.1', done))
  const { port } = server.address() as { port: number }
  await new Promise(done => server.close(done))
  return port
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}
