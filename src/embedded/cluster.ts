import { mkdir, mkdtemp, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { newSecret } from '../secrets.ts'
import { isAlive } from './postmaster.ts'
import type { Programs } from './programs.ts'

export const SUPERUSER = 'courtside'

// It lives in the cluster, so that the two come, move and go together.
const PASSWORD_FILE = 'courtside-password'

/**
 * Makes a cluster at this path, unless there is one. It is made under another name and moved into place whole, so that an
 * interruption leaves nothing half done.
 * @param locale initdb's options for the locale
 * @param onRunning is called when initdb runs
 * @throws when the one that is there is another PostgreSQL's than the programs are
 */
export async function createCluster(
  programs: Programs,
  cluster: string,
  locale: string[],
  onRunning: () => void,
): Promise<void> {
  await mkdir(dirname(cluster), { recursive: true, mode: 0o700 })
  await sweepDrafts(cluster)
  if (await exists(cluster)) return refuseOther(programs, cluster)
  const draft = await mkdtemp(`${draftName(cluster)}${process.pid}-`)
  try {
    const made = join(draft, 'cluster')
    const password = join(draft, PASSWORD_FILE)
    await writeFile(password, newSecret(), { mode: 0o600, flush: true })
    await programs.handOver(draft)
    const ran = programs.run('initdb', [
      ...['--pgdata', made, '--username', SUPERUSER, '--pwfile', password],
      ...['--auth', 'scram-sha-256', '--encoding', 'UTF8', ...locale, '--no-instructions'],
    ])
    onRunning()
    await ran
    await rename(password, join(made, PASSWORD_FILE))
    await flush(made)
    await rename(made, cluster).catch(error => {
      // Another process was quicker.
      if (!['ENOTEMPTY', 'EEXIST'].includes(error.code)) throw error
    })
    await flush(dirname(cluster))
  } finally {
    await rm(draft, { recursive: true, force: true })
  }
}

/** PostgreSQL says it only to its log, and at each try to start it. */
async function refuseOther({ major }: Programs, cluster: string): Promise<void> {
  // A file that isn't there is left for PostgreSQL to find.
  const found = await readFile(join(cluster, 'PG_VERSION'), 'utf8').catch(() => undefined)
  if (found === undefined || Number(found) === major) return
  throw new Error(
    `The data in ${cluster} is of PostgreSQL ${found.trim()}, and this version of Courtside brings ${major}, which cannot read it. ` +
      'Start a version that brings the same; docs/operations.md tells how to move the data.',
  )
}

/** The superuser's password. @throws when the file in the cluster is missing */
export async function passwordOf(cluster: string): Promise<string> {
  const path = join(cluster, PASSWORD_FILE)
  return readFile(path, 'utf8').catch(cause => {
    throw new Error(`${path} cannot be read. Without it the data there has no key: put it back from a copy.`, { cause })
  })
}

/** Removes what processes that died at the making of a cluster have left. */
async function sweepDrafts(cluster: string): Promise<void> {
  const prefix = basename(draftName(cluster))
  for (const name of await readdir(dirname(cluster))) {
    if (!name.startsWith(prefix) || (await isAlive(Number.parseInt(name.slice(prefix.length), 10)))) continue
    // An initdb that has outlived its parent may still write here; the next start then sweeps the rest.
    await rm(join(dirname(cluster), name), { recursive: true, force: true }).catch(() => {})
  }
}

function draftName(cluster: string): string {
  return `${cluster}-draft-`
}

/** A file that was moved into a folder stays there through a power cut only when the folder is flushed too. */
async function flush(folder: string): Promise<void> {
  const handle = await open(folder)
  await handle.sync().finally(() => handle.close())
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}
