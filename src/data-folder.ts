import { constants } from 'node:fs'
import { access, lstat, mkdir, readdir, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'

const ROOT = 0

/**
 * Creates the folder DATA_DIR with mode 0700, unless it exists.
 * @returns the absolute path of the folder
 * @throws an error that names DATA_DIR, if the folder cannot be created or this process may not write to it
 * @throws an error that names DATA_DIR, if this process runs as root and another user controls the folder
 */
export async function prepareDataFolder(dataDir: string): Promise<string> {
  const folder = resolve(dataDir)
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    await access(folder, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (cause) {
    throw new Error(`DATA_DIR: ${explain(folder, cause as NodeJS.ErrnoException)}`, { cause })
  }
  if (process.geteuid?.() === ROOT) await requireRootFolder(folder)
  return folder
}

function explain(folder: string, { code, message }: NodeJS.ErrnoException): string {
  if (code === 'EEXIST') return `${folder} is a file. Set DATA_DIR to a folder.`
  if (code === 'ENOTDIR') return `the path ${folder} leads through a file. Set DATA_DIR to a folder.`
  if (code === 'EROFS') return `${folder} is on a read-only file system. Set DATA_DIR to a folder that can be written.`
  if (code === 'EACCES' || code === 'EPERM') {
    const user = process.geteuid?.()
    return `the user id ${user} may not write to ${folder}. Make this user the owner of the folder, or set another DATA_DIR.`
  }
  return message
}

/**
 * Checks that root, and no other user, decides what the paths in the data folder lead to. Another user could replace a
 * file by a symbolic link, and root would then change a file elsewhere. Links of root are allowed, because an
 * administrator may keep the database on another disk.
 * @throws if another user owns the folder or may write to it, or owns a link to it or in it
 */
async function requireRootFolder(folder: string): Promise<void> {
  const { uid } = await stat(folder)
  if (uid !== ROOT) {
    throw new Error(
      `DATA_DIR: ${folder} belongs to the user id ${uid}, who could make root change other files. Start Courtside as ` +
        'this user, or set another DATA_DIR.',
    )
  }
  const warning = await findFolderWarning(folder)
  if (warning) throw new Error(warning)
  for (const path of [folder, ...(await readdir(folder)).map(name => join(folder, name))]) {
    const stats = await lstat(path).catch(() => undefined)
    if (!stats?.isSymbolicLink() || stats.uid === ROOT) continue
    throw new Error(
      `DATA_DIR: ${path} is a symbolic link of the user id ${stats.uid}. Only root may own it. Delete it.`,
    )
  }
}

/**
 * Returns a warning if users other than the owner may write to the data folder. They could replace every file in it.
 */
export async function findFolderWarning(folder: string): Promise<string | undefined> {
  const { mode } = await stat(folder)
  if ((mode & 0o022) === 0) return undefined
  return `DATA_DIR: users other than the owner may write to ${folder}. Run: chmod go-w ${folder}`
}
