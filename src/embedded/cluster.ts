import { mkdir, mkdtemp, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { newSecret } from '../secrets.ts'
import { isAlive } from './postmaster.ts'
import type { Programs } from './programs.ts'

export const SUPERUSER = 'courtside'

// The password file is in the cluster's folder, so the password stays with the data when the folder is moved.
const PASSWORD_FILE = 'courtside-password'

/**
 * Creates a cluster (a PostgreSQL data folder) at the path `cluster`, unless a folder exists at this path. initdb
 * writes the cluster to a draft folder. When initdb has finished, this function moves the cluster to its path. So an
 * interruption leaves no incomplete cluster at this path.
 * @param locale initdb's options for the locale
 * @param onWaiting is called while initdb runs
 * @throws if a cluster of another major PostgreSQL version exists
 */
export async function createCluster(
  programs: Programs,
  cluster: string,
  locale: string[],
  onWaiting: () => void,
): Promise<void> {
  await mkdir(dirname(cluster), { recursive: true, mode: 0o700 })
  await removeStaleDrafts(cluster)
  if (await exists(cluster)) return requireSameMajor(programs, cluster)
  const draft = await mkdtemp(`${draftPrefix(cluster)}${process.pid}-`)
  try {
    const draftCluster = join(draft, 'cluster')
    const password = join(draft, PASSWORD_FILE)
    await writeFile(password, newSecret(), { mode: 0o600, flush: true })
    await programs.giveToDatabaseUser(draft)
    const initdbEnd = programs.run('initdb', [
      ...['--pgdata', draftCluster, '--username', SUPERUSER, '--pwfile', password],
      ...['--auth', 'scram-sha-256', '--encoding', 'UTF8', ...locale, '--no-instructions'],
    ])
    onWaiting()
    await initdbEnd
    await rename(password, join(draftCluster, PASSWORD_FILE))
    await syncFolder(draftCluster)
    await rename(draftCluster, cluster).catch(error => {
      // Another process has created the cluster first.
      if (!['ENOTEMPTY', 'EEXIST'].includes(error.code)) throw error
    })
    await syncFolder(dirname(cluster))
  } finally {
    await rm(draft, { recursive: true, force: true })
  }
}

/** Checks the version of an existing cluster, because PostgreSQL reports an unsuitable version only in its log. */
async function requireSameMajor({ major }: Programs, cluster: string): Promise<void> {
  // If the file PG_VERSION is missing, this function throws nothing, because PostgreSQL reports this error when it
  // starts.
  const version = await readFile(join(cluster, 'PG_VERSION'), 'utf8').catch(() => undefined)
  if (version === undefined || Number(version) === major) return
  throw new Error(
    `PostgreSQL ${version.trim()} wrote the data in ${cluster}. This version of Courtside brings ${major}, which ` +
      `cannot read this data. Start a version of Courtside that brings PostgreSQL ${version.trim()}. ` +
      'docs/operations.md describes how to move the data to a newer version of PostgreSQL.',
  )
}

/** Returns the superuser's password. @throws if the password file cannot be read */
export async function readPassword(cluster: string): Promise<string> {
  const path = join(cluster, PASSWORD_FILE)
  return readFile(path, 'utf8').catch(cause => {
    const hint = 'It contains the password of the database. Restore the file from a backup.'
    throw new Error(`${path} cannot be read. ${hint}`, { cause })
  })
}

/** Removes the drafts of processes that died while they created a cluster. */
async function removeStaleDrafts(cluster: string): Promise<void> {
  const prefix = basename(draftPrefix(cluster))
  for (const name of await readdir(dirname(cluster))) {
    if (!name.startsWith(prefix) || (await isAlive(Number.parseInt(name.slice(prefix.length), 10)))) continue
    // An initdb process that outlived its parent may still write to the draft, so the removal may fail. The next
    // startup removes the remaining files.
    await rm(join(dirname(cluster), name), { recursive: true, force: true }).catch(() => {})
  }
}

function draftPrefix(cluster: string): string {
  return `${cluster}-draft-`
}

/** Flushes a folder to disk. Otherwise a power failure could undo the rename of a file into this folder. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder)
  await handle.sync().finally(() => handle.close())
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}
