import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** The user id and the group id of an unprivileged account that every Debian system has. */
export const UNPRIVILEGED_UID = 65_534

/** The arguments of `setpriv` that run a program as this user. */
export const AS_UNPRIVILEGED = ['--reuid', `${UNPRIVILEGED_UID}`, '--regid', `${UNPRIVILEGED_UID}`, '--clear-groups']

/** Returns why a test cannot run this checkout as this user, or false if it can. A test passes the result to `skip`. */
export function findSkipReason(): string | false {
  if (process.getuid?.() !== 0) return 'only root can run a program as another user'
  const packages = fileURLToPath(new URL('../../node_modules', import.meta.url))
  const { status } = spawnSync('setpriv', [...AS_UNPRIVILEGED, 'test', '-x', packages])
  return status !== 0 && `other users cannot enter ${packages}: clone the repository into a folder with the mode 755`
}
