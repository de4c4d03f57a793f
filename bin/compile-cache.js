import { lstatSync, mkdirSync, realpathSync } from 'node:fs'
import module from 'node:module'
import { dirname, join } from 'node:path'

const ROOT = 0

/**
 * Stores compiled code in a folder, which halves the time to load the code at later starts. Node runs the code in the
 * folder without a further check, so no other user may be able to write to it. By default, Node would use a folder in
 * /tmp, which any user can create first. If there is no safe folder, the process runs without a cache.
 * @param {string} programFolder the folder of the program. If this user may not write to it, DATA_DIR is used
 * @param {string} dataDir
 */
export function enableCompileCache(programFolder, dataDir) {
  const user = process.getuid?.()
  // Windows has a separate temporary folder for each user.
  if (user === undefined) return module.enableCompileCache?.()
  const folders = [join(programFolder, `.compile-cache-${user}`), join(dataDir, 'compile-cache')]
  const folder = folders.find(path => prepare(path, user))
  if (folder !== undefined) module.enableCompileCache?.(folder)
}

/** Creates a folder, unless it exists. Returns whether only this user can write to it. Does not create its parent. */
function prepare(path, user) {
  try {
    const parent = realpathSync(dirname(path))
    for (let folder = parent; ; folder = dirname(folder)) {
      if (!isProtected(folder, user)) return false
      if (folder === dirname(folder)) break
    }
    try {
      mkdirSync(path, { mode: 0o700 })
    } catch (error) {
      if (error.code !== 'EEXIST') return false
    }
    const stats = lstatSync(path)
    return stats.isDirectory() && stats.uid === user && (stats.mode & 0o077) === 0
  } catch {
    return false
  }
}

/**
 * Returns whether only this user and root can replace a folder inside this folder. In a sticky folder such as /tmp,
 * other users cannot replace it.
 */
function isProtected(folder, user) {
  const { mode, uid } = lstatSync(folder)
  return (uid === user || uid === ROOT) && ((mode & 0o022) === 0 || (mode & 0o1000) !== 0)
}
