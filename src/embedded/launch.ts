import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { constants } from 'node:fs'
import { open, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { listSharedMemoryOptions, type Programs } from './cluster.ts'
import { giveFolder } from './give-folder.ts'
import { findPostmaster, removeLockFile, stopPostmaster, stopProcess } from './postmaster.ts'
import { spawnProgram } from './programs.ts'
import { isServerListening, prepareSocketFolder, SOCKET_FOLDER_FROM_CLUSTER } from './socket.ts'

const READY_TIMEOUT_MS = 60_000
const MAX_LOG_BYTES = 5_000_000

// SERVER_SETTINGS contains no durability setting, so PostgreSQL's defaults apply to durability. The server gets little
// memory, because it shares the machine with this process. The server's log reports the state of the server. The log
// contains no failed statements and no values, because values may be e-mail addresses.
const SERVER_SETTINGS = {
  // Only programs that can enter the folder of the Unix socket can connect to the server.
  listen_addresses: '',
  unix_socket_directories: SOCKET_FOLDER_FROM_CLUSTER,
  unix_socket_permissions: '0700',
  port: '5432',
  password_encryption: 'scram-sha-256',
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

/** A server process that this process has started. */
export type Server = {
  /** Resolves when the server process has ended. */
  ended: Promise<unknown>
  isRunning(): boolean
  /** Stops the server within 9 s. */
  stop(): Promise<void>
  /** Stops the server immediately, without writing to the data folder. The next startup recovers the data. */
  abort(): void
}

type LaunchOptions = { settings?: Record<string, string>; onWaiting?: () => void; signal?: AbortSignal }

/**
 * Starts a server and waits until it accepts connections. The caller must own the data folder. If a server of a killed
 * process still runs on the cluster, stops that server first.
 * @param options.settings settings that override SERVER_SETTINGS
 * @param options.onWaiting is called while the server starts
 * @param options.signal ends the start when it aborts
 * @throws if the server does not start. The message tells the operator what to do
 */
export async function launch(
  programs: Programs,
  cluster: string,
  { settings = {}, onWaiting = () => {}, signal }: LaunchOptions,
): Promise<Server> {
  await stopLeftover(cluster)
  await giveFolder(programs.account, cluster)
  await prepareSocketFolder(dirname(cluster), programs.account)
  const logPath = `${cluster}.log`
  await rotateLog(logPath)
  const deadline = performance.now() + READY_TIMEOUT_MS
  // A child of a killed server may still run for a moment, so a first attempt can fail. More than five attempts would
  // only delay the report of every other error.
  for (let attempt = 1; ; attempt += 1) {
    const logStart = (await stat(logPath).catch(() => ({ size: 0 }))).size
    const child = await spawnServer(programs, cluster, logPath, { ...SERVER_SETTINGS, ...settings })
    const server = toServer(child)
    onWaiting()
    while (server.isRunning() && performance.now() < deadline && !signal?.aborted) {
      const postmaster = await findPostmaster(cluster)
      if (postmaster?.pid === child.pid && postmaster?.status === 'ready') return server
      await delay(10)
    }
    if (server.isRunning()) {
      await server.stop()
      signal?.throwIfAborted()
      throw new Error(`The embedded database was not ready within ${READY_TIMEOUT_MS / 1000} s. See ${logPath}.`)
    }
    if (attempt === 5) {
      const reason = await readReason(logPath, logStart)
      throw new Error(`The embedded database does not start: ${reason} See ${logPath}.`)
    }
    await delay(attempt * 200, undefined, { signal })
  }
}

/**
 * Stops the server that a killed process left running on a cluster, and removes its lock file.
 * @throws if the server runs where this process cannot stop it
 */
async function stopLeftover(cluster: string): Promise<void> {
  const leftover = await findPostmaster(cluster)
  if (leftover) await stopPostmaster(leftover)
  else if (await isServerListening(dirname(cluster))) {
    throw new Error(
      `PostgreSQL still runs on ${cluster}, but its process is not visible here. A service in another container was ` +
        'killed and left it running. Stop that container first.',
    )
  }
  await removeLockFile(cluster)
}

async function spawnServer(
  { account, bin }: Programs,
  cluster: string,
  logPath: string,
  settings: Record<string, string>,
): Promise<ChildProcess> {
  const { O_APPEND, O_CREAT, O_WRONLY, O_NOFOLLOW } = constants
  const output = await open(logPath, O_APPEND | O_CREAT | O_WRONLY | O_NOFOLLOW, 0o600)
  const options = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  // `readCommandLine` expects the folder as the last argument.
  const child = spawnProgram(
    account,
    join(bin, 'postgres'),
    [...options, ...listSharedMemoryOptions(), '-D', cluster],
    {
      // The server runs in a separate session. So Ctrl-C at the terminal reaches only this process, which then stops
      // the server.
      detached: true,
      stdio: ['ignore', output.fd, output.fd],
    },
  )
  await output.close()
  child.unref()
  return child
}

function toServer(child: ChildProcess): Server {
  const isRunning = () => child.pid !== undefined && child.exitCode === null && child.signalCode === null
  return {
    // If the program cannot start, the child emits `error` instead of `exit`.
    ended: once(child, 'exit').catch(() => {}),
    isRunning,
    stop: () => stopProcess(child.pid!, isRunning),
    abort: () => void (isRunning() && child.kill('SIGQUIT')),
  }
}

/** Returns the first fatal line that the server has written to its log since `start`. */
async function readReason(logPath: string, start: number): Promise<string> {
  const log = await open(logPath, constants.O_RDONLY | constants.O_NOFOLLOW)
  const text = (await log.readFile().finally(() => log.close())).subarray(start).toString()
  const line = /(?:FATAL|PANIC|postgres): +(.*)/.exec(text)?.[1]
  return line ? `${line}.` : 'it gives no reason.'
}

/**
 * If a log file is too long, copies it to `<path>.1` and truncates it. This function does not replace the file, because
 * the server keeps appending to the open file. It follows no symbolic link, and replaces an earlier `<path>.1`.
 */
export async function rotateLog(path: string): Promise<void> {
  const log = await open(path, constants.O_RDWR | constants.O_NOFOLLOW).catch(() => undefined)
  if (!log) return
  try {
    if ((await log.stat()).size < MAX_LOG_BYTES) return
    await rm(`${path}.1`, { force: true })
    const copy = await open(`${path}.1`, 'wx', 0o600)
    await pipeline(log.createReadStream({ autoClose: false }), copy.createWriteStream())
    await log.truncate()
  } finally {
    await log.close()
  }
}
