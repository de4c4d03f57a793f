import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { chmod, lstat, mkdtemp, open, readdir, rename, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { FastifyBaseLogger } from 'fastify'
import { runInitdb } from './database-user.ts'
import { removeFile, removeFolder } from './foreign-folder.ts'
import type { Account } from './programs.ts'
import { readClusterFile } from './read-cluster-file.ts'

/** The superuser of a cluster. It can log in only while `prepareDatabase` runs. */
export const SUPERUSER = 'courtside'

// With this locale, upper and lower case follow Unicode, and strings are sorted by code point. Since version 17 the
// locale is built into PostgreSQL, so it is the same on every platform.
const LOCALE = ['--locale-provider', 'builtin', '--builtin-locale', 'C.UTF-8', '--locale', 'C']
// The locale for the programs of another PostgreSQL, which may be older than version 17.
const PORTABLE_LOCALE = ['--locale', 'C.UTF-8']

/** PostgreSQL's programs: their folder, their major version, and the user who runs them. */
export type Programs = { bin: string; major: number; account: Account }

/**
 * Creates a cluster (a PostgreSQL data folder) at the path `cluster`, unless a folder exists at this path. initdb
 * writes the cluster to a draft folder. When initdb has finished, this function moves the cluster to its path. So an
 * interruption leaves no incomplete cluster at this path. Only the owner of the data folder may call this function.
 * @param onWaiting is called while initdb runs
 * @throws if the cluster that exists cannot be used. The message tells the operator what to do
 */
export async function createCluster(
  programs: Programs,
  cluster: string,
  log: FastifyBaseLogger,
  onWaiting: () => void,
): Promise<void> {
  await removeDrafts(cluster)
  if (await hasCluster(cluster)) return mendCluster(programs, cluster, log)
  const draft = await mkdtemp(draftPrefix(cluster))
  try {
    const draftCluster = join(draft, 'cluster')
    const initdbEnd = runInitdb(programs.account, join(programs.bin, 'initdb'), draft, [
      ...['--pgdata', draftCluster, '--username', SUPERUSER, '--auth', 'reject', '--encoding', 'UTF8'],
      ...(programs.major >= 17 ? LOCALE : PORTABLE_LOCALE),
      ...(programs.major >= 16 ? listSharedMemoryOptions() : []),
      '--no-instructions',
    ])
    onWaiting()
    await initdbEnd
    await syncFolder(draftCluster)
    await rename(draftCluster, cluster)
    // Until the rename, a program of the user who ran initdb could replace the folder by a link.
    if (!(await lstat(cluster)).isDirectory()) {
      await removeFile(cluster)
      throw new Error(`initdb has created no folder ${draftCluster}.`)
    }
    await syncFolder(dirname(cluster))
  } finally {
    await removeFolder(draft)
  }
}

/**
 * Returns the options for PostgreSQL's dynamic shared memory. By default, PostgreSQL uses files in /dev/shm on Linux.
 * In a container, /dev/shm may be too small or read-only. PostgreSQL needs System V shared memory in any case, so we
 * use it here too. macOS allows too little of it, and has no /dev/shm.
 */
export function listSharedMemoryOptions(): string[] {
  return process.platform === 'linux' ? ['-c', 'dynamic_shared_memory_type=sysv'] : []
}

/** Returns whether a cluster exists. @throws if a file other than a folder is at its path */
export async function hasCluster(cluster: string): Promise<boolean> {
  const stats = await stat(cluster).catch(error => {
    if (error.code === 'ENOENT') return undefined
    throw new Error(`${cluster} cannot be read: ${error.message}`, { cause: error })
  })
  if (stats && !stats.isDirectory()) throw new Error(`${cluster} is a file. It must be the folder of the database.`)
  return stats !== undefined
}

/**
 * Finds and repairs faults that would keep PostgreSQL from starting. PostgreSQL would report them only in its log.
 */
async function mendCluster({ major, account }: Programs, cluster: string, log: FastifyBaseLogger): Promise<void> {
  const { uid, mode } = await stat(cluster)
  const user = process.geteuid?.()
  if (account.uid === undefined && user !== undefined && uid !== user) {
    throw new Error(
      `${cluster} belongs to the user id ${uid}, but this process runs as the user id ${user}. Start Courtside as the ` +
        `user id ${uid}, or run as root: chown -R ${user} ${dirname(cluster)}`,
    )
  }
  if ((mode & 0o7777) !== 0o700) {
    log.warn(`${cluster} had the mode ${(mode & 0o7777).toString(8)}. PostgreSQL needs 700, so the mode is 700 now`)
    await chmod(cluster, 0o700)
  }
  // If the file PG_VERSION is missing or has another content, this function throws nothing, because PostgreSQL reports
  // this error when it starts. The content may come from another file, so no message contains it.
  const version = await readClusterFile(cluster, 'PG_VERSION').catch(() => undefined)
  if (version === undefined || !/^\d+\s*$/.test(version) || Number(version) === major) return
  throw new Error(
    `PostgreSQL ${version.trim()} wrote the data in ${cluster}. This version of Courtside brings ${major}, which ` +
      `cannot read this data. Start a version of Courtside that brings PostgreSQL ${version.trim()}. ` +
      'docs/operations.md describes how to move the data to a newer version of PostgreSQL.',
  )
}

/** Removes the drafts of processes that died while they created a cluster. */
async function removeDrafts(cluster: string): Promise<void> {
  const prefix = basename(draftPrefix(cluster))
  for (const name of await readdir(dirname(cluster))) {
    if (name.startsWith(prefix)) await removeFolder(join(dirname(cluster), name))
  }
}

function draftPrefix(cluster: string): string {
  return `${cluster}-draft-`
}

/** Replaces a file in a cluster as a whole. The file gets mode 0600 and the owner of the cluster. */
export async function replaceFile(cluster: string, name: string, text: string): Promise<void> {
  const draft = join(cluster, `${name}.${randomUUID()}`)
  try {
    const handle = await open(draft, 'wx', 0o600)
    try {
      await handle.writeFile(text)
      await handle.sync()
      const { uid, gid } = await stat(cluster)
      // The owner of the cluster may have replaced the draft by another file, so its path is not used again.
      if (process.geteuid?.() === 0) await handle.chown(uid, gid)
    } finally {
      await handle.close()
    }
    await rename(draft, join(cluster, name))
    await syncFolder(cluster)
  } finally {
    await removeFile(draft)
  }
}

/** Flushes a folder to disk. Otherwise a power failure could undo the rename of a file into this folder. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, constants.O_RDONLY | constants.O_DIRECTORY)
  await handle.sync().finally(() => handle.close())
}
