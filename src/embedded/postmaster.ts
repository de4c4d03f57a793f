import { execFile } from 'node:child_process'
import { readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'

/** A running PostgreSQL server, as its lock file `postmaster.pid` describes it. */
export type Postmaster = { pid: number; status: string }

const lockFile = (cluster: string) => join(cluster, 'postmaster.pid')

/**
 * Returns the server that runs on a cluster's folder, or undefined if none runs. Does not find a server whose process
 * id is not visible here, because it runs in another container.
 */
export async function findPostmaster(cluster: string): Promise<Postmaster | undefined> {
  const text = await readFile(lockFile(cluster), 'utf8').catch(() => undefined)
  if (!text || !(await runsOnFolder(cluster, text))) return undefined
  // Since PostgreSQL 10, the eight lines of the lock file are: pid, folder, start time, port, socket folder, address,
  // shared memory, status.
  const lines = text.split('\n').map(line => line.trim())
  return { pid: Number(lines[0]), status: lines[7] ?? 'starting' }
}

/**
 * Removes the lock file of a cluster. The caller must own the data folder, and must know that no server runs on the
 * cluster. PostgreSQL itself ignores the file if no process has the pid in it. But if the file is empty or cut, or if
 * an unrelated process or a zombie has the pid, PostgreSQL refuses to start.
 */
export async function removeLockFile(cluster: string): Promise<void> {
  await rm(lockFile(cluster), { force: true })
}

/** Stops a server that this process did not start. Takes at most 9 s. */
export async function stopPostmaster({ pid }: Postmaster): Promise<void> {
  // The lock file disappears shortly before the process ends, so the code below waits for the process.
  const command = (await readCommandLine(pid)).join(' ')
  await stopProcess(pid, async () => (await readCommandLine(pid)).join(' ') === command)
}

/** Stops a server process within 9 s. Sends stronger signals if the process does not end. */
export async function stopProcess(pid: number, isRunning: () => boolean | Promise<boolean>): Promise<void> {
  const steps = [
    // Fast shutdown: ends all database sessions and loses no data.
    { signal: 'SIGINT', waitMs: 3_000 },
    // Immediate shutdown: the next startup recovers the data as after a crash. The server kills its remaining children
    // 5 s after the signal.
    { signal: 'SIGQUIT', waitMs: 5_500 },
    { signal: 'SIGKILL', waitMs: 500 },
  ] as const
  for (const { signal, waitMs } of steps) {
    if (!(await isRunning())) return
    try {
      process.kill(pid, signal)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EPERM') return
      throw new Error(`PostgreSQL runs as process ${pid}, which this user may not stop. Stop it first.`, {
        cause: error,
      })
    }
    for (let waitedMs = 0; waitedMs < waitMs && (await isRunning()); waitedMs += 10) await delay(10)
  }
}

/** Returns whether the pid in a lock file belongs to a PostgreSQL server on the cluster's folder. */
async function runsOnFolder(cluster: string, lockText: string): Promise<boolean> {
  const [pid, folderAtStart] = lockText.split('\n')
  const words = await readCommandLine(Number(pid))
  const folderArgument = words[words.indexOf('-D') + 1]
  if (!words.includes('-D') || folderArgument === undefined) return false
  const folderStats = await stat(folderArgument).catch(() => undefined)
  // The path in the argument `-D` does not exist, so the folder has been moved since the server started. If the lock
  // file contains the same path, the lock file belongs to this server.
  if (!folderStats) return folderArgument === folderAtStart
  // Compares inodes instead of paths, because a symbolic link may lead to the folder.
  const clusterStats = await stat(cluster)
  return folderStats.ino === clusterStats.ino && folderStats.dev === clusterStats.dev
}

/** Returns the program and arguments of a process. Returns an empty array if no running process has this pid. */
async function readCommandLine(pid: number): Promise<string[]> {
  if (!(pid > 0)) return []
  if (process.platform === 'linux') {
    const text = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
    return text.split('\0').slice(0, -1)
  }
  const { stdout } = await promisify(execFile)('ps', ['-o', 'args=', '-p', String(pid)]).catch(() => ({ stdout: '' }))
  // `ps` separates the arguments by spaces. The folder may contain spaces, but it is the last argument.
  const [before = '', folder] = stdout.trim().split(/ -D (.*)/s)
  return before === '' ? [] : [...before.split(' '), ...(folder === undefined ? [] : ['-D', folder])]
}
