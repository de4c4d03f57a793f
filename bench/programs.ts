import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { readCpuSeconds, readMemoryMegabytes } from './resources.ts'

/** A program that is measured, as a process of its own. */
export type Program = {
  name: string
  port: number
  /** CPU seconds it has used so far. */
  cpuSeconds(): Promise<number>
  /** Resident memory, megabytes. */
  memory(): Promise<number>
  /** From the start of the process to its first good answer, seconds. */
  startSeconds: number
  /** @param signal SIGTERM by default */
  stop(signal?: NodeJS.Signals): Promise<void>
}

export const JWT_SECRET = 'Yf3qk8Zr1vLw6Tn0Xb5Jm9Hs2Gd7Pc4U'
export const INTAKE_KEY = 'Qe8Rt2Yu6Io0Pa4Sd9Fg3Hj7Kl1Zx5Cv'

const CHECKOUT = new URL('..', import.meta.url).pathname
const READY_TIMEOUT_MS = 60_000

// What the programs print. It stays where a program doesn't start.
const logs = mkdtempSync(join(tmpdir(), 'courtside-bench-logs-'))
const running = new Set<ChildProcess>()
process.once('exit', code => {
  // In good order: the service that has a PostgreSQL of its own then ends that too.
  for (const child of running) child.kill('SIGTERM')
  if (code === 0) rmSync(logs, { recursive: true, force: true })
})

/**
 * This service as it runs in production: it logs every answer, to a file; its clients stand behind a proxy.
 * @param checkout where its code is: another one, to compare a change with what was before
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
    // Mails stay in the outbox where nobody works at it, which is what "discarded" means here.
    ROLE: 'web',
    SMTP_URL: 'smtp://127.0.0.1:9',
    // The load comes as if from many clients, through a proxy on this machine.
    TRUST_PROXY: '127.0.0.1/32',
    THROTTLE_REQUEST_OTP: '1000000',
    THROTTLE_VERIFY_OTP: '1000000',
    LOG_LEVEL: 'info',
    ...profilerEnvironment('courtside'),
    ...env,
  }
  return start('courtside', readStartArguments(checkout), '/readyz', settings)
}

/** This service with no setting at all, as `npm start` has it: it brings up a PostgreSQL of its own. */
export function startEmbeddedService(dataDir: string): Promise<Program> {
  return start('courtside', readStartArguments(CHECKOUT), '/readyz', { DATA_DIR: dataDir })
}

/** What `npm start` gives to `node`. */
function readStartArguments(checkout: string): string[] {
  const { scripts } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8'))
  const [, ...args] = scripts.start.split(' ') as string[]
  return args.map(arg => (arg.startsWith('bin/') ? join(checkout, arg) : arg))
}

/** Node's profiler, where `profile.ts` asks for it; what it saw is written when the process ends. */
function profilerEnvironment(name: string): Record<string, string> {
  const { BENCH_PROFILE_DIR: folder, BENCH_PROFILE_OF: of = 'courtside' } = process.env
  return folder && of === name ? { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${folder}` } : {}
}

/** One of the programs in `programs/`. */
export function startProgram(name: string, databaseUrl: string): Promise<Program> {
  const path = new URL(`./programs/${name}.ts`, import.meta.url).pathname
  return start(name, [path], '/readyz', {
    NODE_ENV: 'production',
    DATABASE_URL: databaseUrl,
    JWT_SECRET,
    ...profilerEnvironment(name),
  })
}

async function start(name: string, args: string[], path: string, env: Record<string, string>): Promise<Program> {
  const port = await freePort()
  // Of the surroundings only what a program needs to run.
  const { PATH, HOME } = process.env
  const log = join(logs, `${name}-${port}.log`)
  const output = openSync(log, 'w', 0o600)
  const began = performance.now()
  const child = spawn(process.execPath, [...process.execArgv, ...args], {
    env: { PATH, HOME, PORT: String(port), ...env },
    stdio: ['ignore', output, output],
  })
  running.add(child)
  child.once('exit', () => running.delete(child))
  await waitUntilReady(child, `http://127.0.0.1:${port}${path}`, log)
  const startSeconds = (performance.now() - began) / 1000
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
  throw new Error(`It did not become ready; ${log} says why.`)
}

/** A port of this machine that nobody listens at just now. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  return port
}
