import { constants } from 'node:fs'
import { type FileHandle, lstat, open, readdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import type { Account } from './programs.ts'

const ROOT = 0
// With these flags, the process follows no symbolic link and does not wait for a named pipe.
const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
// Linux refuses to open a link (ELOOP) or a socket (ENXIO). The entry may also have been removed (ENOENT).
const SKIPPED = ['ELOOP', 'ENXIO', 'ENOENT', 'EOPNOTSUPP']

/**
 * Makes the user of an account the owner of a folder and everything in it. Changes the owner of the folder itself last.
 * So after an interruption, the folder still has the earlier owner, and the next startup repeats the work. Some
 * programs copy the owners of files but not of folders. So the function also checks the owner of a file in the cluster.
 *
 * Another user may own the folder and change it at the same time. So the function opens each entry relative to its open
 * parent folder, follows no links, and changes the owner of the opened file. It skips links. It also skips files with
 * several hard links, because such a file may also be in another folder.
 */
export async function giveFolder({ uid, gid }: Account, folder: string): Promise<void> {
  if (uid === undefined) return
  const owners = await Promise.all([folder, join(folder, 'PG_VERSION')].map(readOwnerId))
  if (owners.every(owner => owner === undefined || owner === uid)) return
  // An administrator may have put a link in the place of the folder.
  const path = owners[0] === ROOT ? await realpath(folder) : folder
  await giveEntry(path, uid, gid!)
}

async function giveEntry(path: string, uid: number, gid: number): Promise<void> {
  const handle = await openEntry(path)
  if (!handle) return
  try {
    const stats = await handle.stat()
    if (stats.isDirectory()) {
      // On Linux, this path leads to the open folder, even if another folder has replaced it.
      const open = process.platform === 'linux' ? `/proc/self/fd/${handle.fd}` : path
      for (const name of await readdir(open)) await giveEntry(join(open, name), uid, gid)
    }
    if (stats.isDirectory() || stats.nlink === 1) await handle.chown(uid, gid)
  } finally {
    await handle.close()
  }
}

async function openEntry(path: string): Promise<FileHandle | undefined> {
  return open(path, FLAGS).catch(error => {
    if (SKIPPED.includes(error.code)) return undefined
    throw error
  })
}

async function readOwnerId(path: string): Promise<number | undefined> {
  return lstat(path).then(
    stats => stats.uid,
    () => undefined,
  )
}
