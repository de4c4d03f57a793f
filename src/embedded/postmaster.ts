import { execFile } from 'node:child_process'
import { readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'

/** A running PostgreSQL server, as its lock file `postmaster.pid` describes it. */
export type Postmaster = { pid: number; port: number; status: string }

const lockFile = (cluster: string) => join(cluster, 'postmaster.pid')

/** Returns the server that runs on a cluster's folder, or undefined if none runs. */
export async function findPostmaster(cluster: string): Promise<Postmaster | undefined> {
  const text = await readFile(lockFile(cluster), 'utf8').catch(() => undefined)
  if (!text || !(await runsOnFolder(cluster, text))) return undefined
  // Since PostgreSQL 10, the eight lines of the lock file are: pid, folder, start time, port, socket folder, address,
  // shared memory, status.
  const lines = text.split('\n').map(line => line.trim())
  return { pid: Number(lines[0]), port: Number(lines[3]), status: lines[7] ?? 'starting' }
}

/**
 * Removes the lock file of a cluster, unless the pid in the file belongs to a server on the cluster's folder.
 * PostgreSQL itself ignores the file if no process has this pid. But if an unrelated process or a zombie has this pid,
 * PostgreSQL refuses to start.
 */
export async function removeStaleLockFile(cluster: string): Promise<void> {
  const path = lockFile(cluster)
  const text = await readFile(path, 'utf8').catch(() => undefined)
  if (!text || (await runsOnFolder(cluster, text))) return
  // Renames the file before removing it. If a new server has replaced the file in the meantime, this function moves the
  // new file back.
  const renamedPath = `${path}.${process.pid}`
  await rename(path, renamedPath).catch(() => {})
  const renamedText = await readFile(renamedPath, 'utf8').catch(() => text)
  await (renamedText === text ? rm(renamedPath, { force: true }) : rename(renamedPath, path))
}

/** Stops a server within 9 s. Sends stronger signals if the server does not stop. */
export async function stopPostmaster(cluster: string, { pid }: Postmaster): Promise<void> {
  const steps = [
    // Fast shutdown: ends all database sessions and loses no data.
    { signal: 'SIGINT', waitMs: 3_000 },
    // Immediate shutdown: the next startup recovers the data as after a crash. The server kills its remaining children
    // 5 s after the signal.
    { signal: 'SIGQUIT', waitMs: 5_500 },
    { signal: 'SIGKILL', waitMs: 500 },
  ] as const
  if ((await findPostmaster(cluster))?.pid !== pid) return
  // The lock file disappears shortly before the process ends, so the code below waits for the process.
  const command = await readCommandLine(pid)
  const isRunning = async () => (await readCommandLine(pid)) === command
  for (const { signal, waitMs } of steps) {
    if (!(await isRunning())) return
    try {
      process.kill(pid, signal)
    } catch {
      return
    }
    for (let waitedMs = 0; waitedMs < waitMs && (await isRunning()); waitedMs += 10) await delay(10)
  }
}

/** Returns whether a process with this pid runs. A zombie does not count as running. */
export async function isAlive(pid: number): Promise<boolean> {
  return (await readCommandLine(pid)) !== ''
}

/** Returns whether the pid in a lock file belongs to a PostgreSQL server on the cluster's folder. */
async function runsOnFolder(cluster: string, lockText: string): Promise<boolean> {
  const [pid, folderAtStart] = lockText.split('\n')
  const folderArgument = / -D (.+?) -p \d/.exec(await readCommandLine(Number(pid)))?.[1]
  if (folderArgument === undefined) return false
  const folderStats = await stat(folderArgument).catch(() => undefined)
  // The path in the argument `-D` does not exist, so the folder has been moved since the server started. If the lock
  // file contains the same path, the lock file belongs to this server.
  if (!folderStats) return folderArgument === folderAtStart
  // Compares inodes instead of paths, because a symbolic link may lead to the folder.
  const clusterStats = await stat(cluster)
  return folderStats.ino === clusterStats.ino && folderStats.dev === clusterStats.dev
}

/**
 * Returns the program and arguments of a process, separated by spaces. Returns an empty text if no running process has
 * this pid.
 */
async function readCommandLine(pid: number): Promise<string> {
  if (!(pid > 0)) return ''
  if (process.platform === 'linux') {
    return (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).replaceAll('\0', ' ')
  }
  const { stdout } = await promisify(execFile)('ps', ['-o', 'args=', '-p', String(pid)]).catch(() => ({ stdout: '' }))
  return stdout.trim()
}
