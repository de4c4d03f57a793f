import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { cp, readFile, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

const ROOT = new URL('../..', import.meta.url).pathname
/** The flags that `npm start` passes to Node. */
const NODE_FLAGS: string[] = readStartScript().match(/--\S+/g)!

function readStartScript(): string {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  return scripts.start.split('exec ')[1]
}

/** A process of the service, started in the same way as `npm start` starts it. */
export type Service = {
  address: string
  /** The parsed log line "listening". It has the members address, page, reference, mailbox and intakeKeyFile. */
  listening: Record<string, string>
  /** Contains every line that the process has printed so far. */
  lines: string[]
  process: ChildProcess
  /** Sends SIGTERM or the given signal. When the process has ended, resolves to its exit code, or null if killed. */
  stop(signal?: NodeJS.Signals): Promise<number | null>
}

/**
 * Starts `courtside serve` on a free port and waits until it listens.
 * @param root the folder of the program; by default the root of this repository
 * @throws an error with the printed lines if the process ends before it listens
 */
export async function startService(env: Record<string, string>, root?: string): Promise<Service> {
  const child = run(['serve'], { PORT: '0', ...env }, root)
  const { listening, lines } = await waitUntilListening(child)
  return {
    address: listening.address!,
    listening,
    lines,
    process: child,
    async stop(signal = 'SIGTERM') {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill(signal)
        await once(child, 'exit')
      }
      return child.exitCode
    },
  }
}

/**
 * Waits until a process of the service listens.
 * @returns the parsed log line "listening", and an array that collects all lines of the process
 * @throws an error with the printed lines if the process ends before it listens
 */
export async function waitUntilListening(child: ChildProcess) {
  const { promise, resolve, reject } = Promise.withResolvers<Record<string, string>>()
  const lines = collectLines(child, line => line.includes('"msg":"listening"') && resolve(JSON.parse(line)))
  child.once('exit', code => {
    reject(new Error(`${child.spawnargs.join(' ')} ended with exit code ${code}:\n${lines.join('\n')}`))
  })
  return { listening: await promise, lines }
}

/** Returns an array that collects the lines of a process. Calls `onLine` with each line. */
export function collectLines(child: ChildProcess, onLine: (line: string) => unknown = () => {}): string[] {
  const lines: string[] = []
  for (const stream of [child.stdout!, child.stderr!]) {
    createInterface(stream).on('line', line => {
      lines.push(line)
      onLine(line)
    })
  }
  return lines
}

/** Returns the mails in the development mailbox of a service, newest first. */
export async function readMailbox({ listening }: Service): Promise<{ to: string; text: string }[]> {
  const url = listening.mailbox!.replace('/dev/mailbox?', '/dev/mailbox.json?')
  return (await (await fetch(url)).json()) as { to: string; text: string }[]
}

/**
 * Copies the program into a folder, so a test can change the files of the copy. The copy shares the installed packages.
 */
export async function copyProgram(folder: string): Promise<void> {
  for (const part of ['bin', 'src', 'migrations', 'package.json']) {
    await cp(join(ROOT, part), join(folder, part), { recursive: true })
  }
  for (const part of ['node_modules', 'client']) await symlink(join(ROOT, part), join(folder, part))
}

/** Runs a `courtside` command and waits for its end. */
export async function courtside(args: string[], env: Record<string, string> = {}) {
  const child = run(args, env)
  let output = ''
  let errors = ''
  child.stdout!.on('data', chunk => {
    output += chunk
  })
  child.stderr!.on('data', chunk => {
    errors += chunk
  })
  await once(child, 'close')
  return { code: child.exitCode, output, errors }
}

/** Returns whether a process runs. A zombie does not count as running: its command line is empty. */
export function isAlive(pid: number): boolean {
  const path = `/proc/${pid}/cmdline`
  return existsSync(path) && readFileSync(path, 'utf8') !== ''
}

/** Returns the pid of the embedded database server that runs on a data folder. */
export async function readPostmasterPid(dataDir: string): Promise<number> {
  return Number((await readFile(join(dataDir, 'postgres/postmaster.pid'), 'utf8')).split('\n')[0])
}

/** Starts a `courtside` command. */
export function run(args: string[], env: Record<string, string>, root = ROOT): ChildProcess {
  // The service inherits only these variables. The settings in the developer's environment must not reach the service.
  const { PATH, HOME, TMPDIR } = process.env
  const inherited = Object.fromEntries(
    Object.entries({ PATH, HOME, TMPDIR }).filter(([, value]) => value !== undefined),
  )
  return spawn(process.execPath, [...NODE_FLAGS, join(root, 'bin/courtside.js'), ...args], {
    env: { ...inherited, ...env } as NodeJS.ProcessEnv,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}
