import { chmod, mkdtemp, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { FastifyBaseLogger } from 'fastify'
import { removeFolder } from './foreign-folder.ts'
import { giveFolder } from './give-folder.ts'
import { type Account, CURRENT_USER, runProgram } from './programs.ts'

const ROOT = 0
// The id of the user `nobody` on every Linux system.
const NOBODY = 65_534
/**
 * The user who runs PostgreSQL if root starts the service. No other program runs as this user, unlike `nobody`. systemd
 * lists the ids from 60578 to 61183 as unused by every distribution: https://systemd.io/UIDS-GIDS
 */
export const DATABASE_UID = 61_042

const NAMESPACE = ['unshare', '--user', `--map-user=${NOBODY}`, `--map-group=${NOBODY}`]

/**
 * Chooses the user who runs PostgreSQL, because PostgreSQL refuses to run as root. An ordinary user runs it as the same
 * user. For root, the function takes the first user who can run the programs and enter the data folder:
 *
 * 1. the owner of the cluster, if this is an ordinary user. The user may own other files of the cluster, such as a
 *    tablespace
 * 2. a user of our own, DATABASE_UID
 * 3. root in a user namespace, inside which the user is called `nobody`. Outside the namespace, this user is still
 *    root. The configuration of a cluster can name programs, so root never runs a cluster that another user could have
 *    changed
 *
 * Does not change the owner of any file.
 * @throws if no user can run PostgreSQL. The message tells the operator what to do
 */
export async function chooseAccount(bin: string, folder: string, log: FastifyBaseLogger): Promise<Account> {
  if (process.geteuid?.() !== ROOT) return CURRENT_USER
  const owner = await findOwner(folder)
  if (![ROOT, NOBODY, DATABASE_UID].includes(owner.uid)) {
    const account = { wrapper: [], ...owner }
    if (await canRun(account, bin, folder)) return account
    throw new Error(
      `DATA_DIR: ${folder}/postgres belongs to the user id ${owner.uid}, who cannot run the programs in ${bin}, or cannot enter ` +
        'DATA_DIR. Start Courtside as this user, move it to a folder that others can read, or set DATABASE_URL.',
    )
  }
  const separate = { wrapper: [], uid: DATABASE_UID, gid: DATABASE_UID }
  if (await canRunInside(separate, bin, folder)) return separate
  if (owner.uid !== ROOT) {
    throw new Error(
      `DATA_DIR: ${folder}/postgres belongs to the user id ${owner.uid}. The user id ${DATABASE_UID} would run PostgreSQL, but ` +
        `cannot run the programs in ${bin}, or cannot enter DATA_DIR. Move them to folders that others can reach, or ` +
        'set DATABASE_URL.',
    )
  }
  const namespaced = { wrapper: NAMESPACE, uid: ROOT, gid: ROOT }
  if (await canRun(namespaced, bin, folder)) {
    log.warn('PostgreSQL runs with the rights of root, because no other user can reach its programs and DATA_DIR')
    return namespaced
  }
  throw new Error(
    'PostgreSQL refuses to run as root. This system refuses user namespaces, and another user cannot reach ' +
      `${bin} or ${folder}. Start Courtside as an ordinary user, move it and DATA_DIR to folders that others can ` +
      'reach, or set DATABASE_URL.',
  )
}

/**
 * Runs initdb, which needs an entry for its user in /etc/passwd. If there is no entry, initdb runs in a user namespace,
 * or as `nobody` if this process is root. Afterwards the draft belongs to the user who runs PostgreSQL.
 * @param draft the folder that initdb writes to
 * @throws if initdb fails. The message tells the operator what to do
 */
export async function runInitdb(account: Account, path: string, draft: string, args: string[]): Promise<void> {
  const isRoot = process.geteuid?.() === ROOT
  const fallbacks = [{ ...account, wrapper: NAMESPACE }, ...(isRoot ? [{ wrapper: [], uid: NOBODY, gid: NOBODY }] : [])]
  for (let candidate = account; ; candidate = fallbacks.shift()!) {
    try {
      await giveFolder(candidate, draft)
      await runProgram(candidate, path, args)
      return await giveFolder(account, draft)
    } catch (error) {
      const { message } = error as Error
      if (!/could not look up effective user ID|unshare(:| failed)|spawn unshare/.test(message)) throw error
      if (fallbacks.length > 0) continue
      throw new Error(
        `The user id ${account.uid ?? process.geteuid?.()} has no entry in /etc/passwd, and initdb needs one. Add an entry, ` +
          'start Courtside as a user who has one, or set DATABASE_URL to your own PostgreSQL.',
        { cause: error },
      )
    }
  }
}

/** Returns the owner of the cluster, or root if there is no cluster. */
async function findOwner(folder: string): Promise<{ uid: number; gid: number }> {
  const { uid, gid } = await stat(join(folder, 'postgres')).catch(() => ({ uid: ROOT, gid: ROOT }))
  return { uid, gid }
}

/**
 * Lets other users pass through the data folder without listing it. Undoes this if the account cannot run PostgreSQL.
 */
async function canRunInside(account: Account, bin: string, folder: string): Promise<boolean> {
  const { mode } = await stat(folder)
  await chmod(folder, (mode & 0o7777) | 0o011)
  let isRunning = false
  try {
    isRunning = await canRun(account, bin, folder)
    return isRunning
  } finally {
    if (!isRunning) await chmod(folder, mode & 0o7777)
  }
}

/**
 * Returns whether an account can run PostgreSQL's server and enter folders in the data folder.
 * @throws if a signal ended the server, because another account might then get the rights of root without need
 */
async function canRun(account: Account, bin: string, folder: string): Promise<boolean> {
  // The name is that of a draft, so the next startup removes the folder if this process is killed.
  const probe = await mkdtemp(join(folder, 'postgres-draft-probe-'))
  try {
    // We keep ownership of the folder `probe`, so the account can read it but not change it.
    await writeFile(join(probe, 'postgresql.conf'), '')
    await chmod(join(probe, 'postgresql.conf'), 0o644)
    await chmod(probe, 0o755)
    // Reads the configuration in the folder and prints one setting of it.
    await runProgram(account, join(bin, 'postgres'), ['-D', probe, '-C', 'max_connections'])
    return true
  } catch (error) {
    // The system sends a signal if it lacks memory. Another program of the same user may also have sent the signal.
    if (((error as Error).cause as { signal?: string } | undefined)?.signal) throw error
    return false
  } finally {
    await removeFolder(probe)
  }
}
