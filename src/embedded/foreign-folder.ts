import { lstat, rm, rmdir, unlink } from 'node:fs/promises'
import { runProgram } from './programs.ts'

const ROOT = 0
const TIMEOUT_MS = 60_000

// This command also works if PATH is empty.
const EMPTY_FOLDER = 'PATH=/usr/bin:/bin:$PATH; rm -rf -- * .[!.]* ..?*'

/**
 * Removes a file, unless it is missing. If another user may write to the file's folder, root must not call Node's `rm`.
 * If a folder replaces the file meanwhile, `rm` empties this folder, even without the option `recursive`.
 */
export async function removeFile(path: string): Promise<void> {
  await unlink(path).catch(error => {
    if (error.code !== 'ENOENT') throw error
  })
}

/**
 * Removes a folder as far as possible, because the next startup tries again. Another user may own the folder, and could
 * replace a folder in it by a link to a folder elsewhere. So root empties the folder with the rights of its owner. Only
 * root may be able to reach the folder, so it is the working folder of the program that empties it.
 */
export async function removeFolder(folder: string): Promise<void> {
  try {
    const { uid, gid } = await lstat(folder)
    if (process.geteuid?.() !== ROOT || uid === ROOT) return await rm(folder, { recursive: true })
    const more = { cwd: folder, timeout: TIMEOUT_MS, killSignal: 'SIGKILL' } as const
    await runProgram({ wrapper: [], uid, gid }, '/bin/sh', ['-c', EMPTY_FOLDER], more)
    await rmdir(folder)
  } catch {
    // An initdb that outlived its parent may still write to the folder.
  }
}
