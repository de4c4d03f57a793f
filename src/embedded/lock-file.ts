import { writeFile } from 'node:fs/promises'
import { DatabaseSync } from 'node:sqlite'

// Result codes of SQLite: https://www.sqlite.org/rescode.html
const SQLITE_BUSY = 5
const SQLITE_READONLY = 8
const SQLITE_CANTOPEN = 14

/** A lock of the operating system. `isSupported` is false if the file system has no locks, so nothing is locked. */
export type FileLock = { isSupported: boolean; release(): void }

/**
 * Takes a lock of the operating system on a file, and creates the file if it is missing. Node has no function for such
 * locks, so this function opens the file as an SQLite database and begins a transaction. SQLite then locks the file
 * with `fcntl`. The transaction writes nothing, so the file stays empty. The kernel frees the lock when this process
 * ends.
 * @returns undefined if another process, or another caller in this process, has the lock
 */
export async function lockFile(path: string): Promise<FileLock | undefined> {
  await createFile(path)
  let database: DatabaseSync | undefined
  try {
    database = new DatabaseSync(path, { timeout: 0 })
    database.exec('begin immediate')
    return { isSupported: true, release: () => database!.close() }
  } catch (error) {
    if (database?.isOpen) database.close()
    const code = (error as { errcode?: number }).errcode
    if (code === SQLITE_BUSY) return undefined
    if (code === SQLITE_READONLY || code === SQLITE_CANTOPEN) {
      throw new Error(`${path} cannot be opened for writing. It must belong to the user who runs Courtside.`, {
        cause: error,
      })
    }
    return { isSupported: false, release: () => {} }
  }
}

/**
 * Creates an empty file, unless it exists. Does not open an existing file: if a process closes a file, it loses all its
 * `fcntl` locks on the file.
 */
async function createFile(path: string): Promise<void> {
  try {
    await writeFile(path, '', { mode: 0o600, flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}
