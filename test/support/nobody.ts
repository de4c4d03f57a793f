import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

export const NOBODY = 65_534

/** The arguments of `setpriv` that run a program as the user `nobody`. */
export const AS_NOBODY = ['--reuid', `${NOBODY}`, '--regid', `${NOBODY}`, '--clear-groups']

/** Returns why a test cannot run the program of this checkout as another user, or false if it can. */
export function findReasonToSkipNobody(): string | false {
  if (process.getuid?.() !== 0) return 'only root can run a program as another user'
  const packages = fileURLToPath(new URL('../../node_modules', import.meta.url))
  const { status } = spawnSync('setpriv', [...AS_NOBODY, 'test', '-x', packages])
  return status !== 0 && `other users cannot enter ${packages}: clone the repository into a folder with the mode 755`
}
