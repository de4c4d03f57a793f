import { constants } from 'node:fs'
import { access, lchown, mkdir, stat } from 'node:fs/promises'
import { resolve } from 'node:path'

const ROOT = 0

/**
 * Creates the folder DATA_DIR with mode 0700, unless it exists.
 * @returns the absolute path of the folder
 * @throws an error that names DATA_DIR, if the folder cannot be created or this process may not write to it
 */
export async function prepareDataFolder(dataDir: string): Promise<string> {
  const folder = resolve(dataDir)
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    await access(folder, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (cause) {
    throw new Error(`DATA_DIR: ${explain(folder, cause as NodeJS.ErrnoException)}`, { cause })
  }
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
 * Makes the owner of a folder also the owner of a file in this folder. If root creates files in the data folder of an
 * ordinary user, that user could otherwise not read them at the next start. Does nothing if this process is not root.
 */
export async function giveToFolderOwner(path: string, folder: string): Promise<void> {
  if (process.geteuid?.() !== ROOT) return
  const { uid, gid } = await stat(folder)
  // `lchown` does not follow symbolic links, so a link in the folder cannot change the owner of another file.
  if (uid !== ROOT) await lchown(path, uid, gid)
}

/**
 * Returns a warning if users other than the owner may write to the data folder. They could replace every file in it.
 */
export async function findFolderWarning(folder: string): Promise<string | undefined> {
  const { mode } = await stat(folder)
  if ((mode & 0o022) === 0) return undefined
  return `DATA_DIR: users other than the owner may write to ${folder}. Run: chmod go-w ${folder}`
}
