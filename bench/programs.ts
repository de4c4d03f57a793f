import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { readCpuSeconds, readMemoryMegabytes } from './resources.ts'

/** A program to measure. It runs in a separate process. */
export type Program = {
  name: string
  port: number
  /** Returns the CPU time that the process has used so far, in seconds. */
  cpuSeconds(): Promise<number>
  /** Returns the resident memory of the process in megabytes. */
  memory(): Promise<number>
  /** The time from the start of the process to its first answer with a status of 2xx, in seconds. */
  startSeconds: number
  /** Ends the process and waits until it has ended. @param signal the default is SIGTERM */
  stop(signal?: NodeJS.Signals): Promise<void>
}

export const JWT_SECRET = 'Yf3qk8Zr1vLw6Tn0Xb5Jm9Hs2Gd7Pc4U'
export const INTAKE_KEY = 'Qe8Rt2Yu6Io0Pa4Sd9Fg3Hj7Kl1Zx5Cv'

const CHECKOUT = new URL('..', import.meta.url).pathname
const READY_TIMEOUT_MS = 60_000

// The programs write their output to this folder. After a failure, the bench keeps the folder for debugging.
const logs = mkdtempSync(join(tmpdir(), 'courtside-bench-logs-'))
const running = new Set<ChildProcess>()
process.once('exit', code => {
  // SIGTERM lets the service stop its embedded PostgreSQL.
  for (const child of running) child.kill('SIGTERM')
  if (code === 0) rmSync(logs, { recursive: true, force: true })
})

/**
 * Starts the service as in production: it logs every answer to a file, and its clients are behind a proxy.
 * @param checkout the folder with the code of the service. To measure the effect of a change, the bench also starts the
 * service of a checkout without this change.
 */
export function startService(
  databaseUrl: string,
  env: Record<string, string> = {},
  checkout = CHECKOUT,
): Promise<Program> {
  const settings = {
    DATABASE_URL: databaseUrl,
    JWT_SECRET,
    INTAKE_KEYS: INTAKE_KEY,
    // A node with this role runs no worker, so the service sends no mails.
    ROLE: 'web',
    SMTP_URL: 'smtp://127.0.0.1:9',
    // The load simulates many clients behind a proxy on this machine.
    TRUST_PROXY: '127.0.0.1/32',
    THROTTLE_REQUEST_OTP: '1000000',
    THROTTLE_VERIFY_OTP: '1000000',
    // All requests come from one machine.
    SIGN_UP_LIMITS: 'off',
    LOG_LEVEL: 'info',
    ...profilerEnvironment('courtside'),
    ...env,
  }
  return start('courtside', readStartArguments(checkout), '/readyz', settings)
}

/** Starts the service without settings, as `npm start` does. The service then starts an embedded PostgreSQL. */
export function startEmbeddedService(dataDir: string): Promise<Program> {
  return start('courtside', readStartArguments(CHECKOUT), '/readyz', { DATA_DIR: dataDir })
}

/** Returns the arguments that `npm start` passes to `node`. */
function readStartArguments(checkout: string): string[] {
  const { scripts } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8'))
  // The script may do other work before it starts `node`.
  const args: string[] = scripts.start
    .split(/\bnode /)
    .at(-1)
    .split(' ')
  return args.map(arg => (arg.startsWith('bin/') ? join(checkout, arg) : arg))
}

/**
 * Returns the environment variables that start Node's profiler, if `profile.ts` requests a profile of this program.
 * Node writes the profile when the process exits.
 */
function profilerEnvironment(name: string): Record<string, string> {
  const { BENCH_PROFILE_DIR: folder, BENCH_PROFILE_PROGRAM: profiledName = 'courtside' } = process.env
  return folder && profiledName === name ? { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${folder}` } : {}
}

/** Starts one of the programs in `programs/`. */
export function startProgram(name: string, databaseUrl: string, env: Record<string, string> = {}): Promise<Program> {
  const path = new URL(`./programs/${name}.ts`, import.meta.url).pathname
  return start(name, [path], '/readyz', {
    NODE_ENV: 'production',
    DATABASE_URL: databaseUrl,
    JWT_SECRET,
    ...profilerEnvironment(name),
    ...env,
  })
}

async function start(name: string, args: string[], path: string, env: Record<string, string>): Promise<Program> {
  const port = await freePort()
  // Pass only the environment variables that every program needs.
  const { PATH, HOME } = process.env
  const log = join(logs, `${name}-${port}.log`)
  const output = openSync(log, 'w', 0o600)
  const startedAt = performance.now()
  const child = spawn(process.execPath, [...process.execArgv, ...args], {
    env: { PATH, HOME, PORT: String(port), ...env },
    stdio: ['ignore', output, output],
  })
  running.add(child)
  child.once('exit', () => running.delete(child))
  await waitUntilReady(child, `http://127.0.0.1:${port}${path}`, log)
  const startSeconds = (performance.now() - startedAt) / 1000
  return {
    name,
    port,
    startSeconds,
    cpuSeconds: () => readCpuSeconds(child.pid!),
    memory: () => readMemoryMegabytes(child.pid!),
    async stop(signal = 'SIGTERM') {
      if (child.exitCode !== null || child.signalCode !== null) return
      const exited = once(child, 'exit')
      child.kill(signal)
      await exited
    },
  }
}

async function waitUntilReady(child: ChildProcess, url: string, log: string): Promise<void> {
  const deadline = performance.now() + READY_TIMEOUT_MS
  while (child.exitCode === null && child.signalCode === null && performance.now() < deadline) {
    const answer = await fetch(url).catch(() => undefined)
    await answer?.arrayBuffer()
    if (answer?.ok) return
    await delay(5)
  }
  child.kill('SIGTERM')
  throw new Error(`The program did not become ready. See ${log}.`)
}

/** Returns a port of this machine that is currently free. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  return port
}
