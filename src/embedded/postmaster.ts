import { execFile } from 'node:child_process'
import { readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'

/** A running PostgreSQL server, read from its lock file. */
export type Postmaster = { pid: number; port: number; status: string }

const lockFile = (cluster: string) => join(cluster, 'postmaster.pid')

/** Returns the server that runs on a cluster's folder, or undefined. */
export async function findPostmaster(cluster: string): Promise<Postmaster | undefined> {
  const text = await readFile(lockFile(cluster), 'utf8').catch(() => undefined)
  if (!text || !(await runsOnFolder(cluster, text))) return undefined
  // Since PostgreSQL 10 the lines are pid, folder, start time, port, socket folder, address, shared memory, status.
  const lines = text.split('\n').map(line => line.trim())
  return { pid: Number(lines[0]), port: Number(lines[3]), status: lines[7] ?? 'starting' }
}

/**
 * Removes a lock file whose process is not a server of this folder. PostgreSQL itself ignores a pid that is free, but
 * it treats a reused pid or a zombie as a running server and refuses to start.
 */
export async function removeStaleLockFile(cluster: string): Promise<void> {
  const path = lockFile(cluster)
  const text = await readFile(path, 'utf8').catch(() => undefined)
  if (!text || (await runsOnFolder(cluster, text))) return
  // Renames the file before removing it. If another process's new server replaced it meanwhile, the file is put back.
  const aside = `${path}.${process.pid}`
  await rename(path, aside).catch(() => {})
  const moved = await readFile(aside, 'utf8').catch(() => text)
  await (moved === text ? rm(aside, { force: true }) : rename(aside, path))
}

/** Stops a server within 9 s, by harder signals the longer it takes. */
export async function stopPostmaster(cluster: string, { pid }: Postmaster): Promise<void> {
  const steps = [
    // Fast shutdown: ends the sessions, loses nothing.
    { signal: 'SIGINT', waitMs: 3_000 },
    // Immediate shutdown: the next start recovers as after a crash. After 5 s the server kills children that still run.
    { signal: 'SIGQUIT', waitMs: 5_500 },
    { signal: 'SIGKILL', waitMs: 500 },
  ] as const
  if ((await findPostmaster(cluster))?.pid !== pid) return
  // The process ends a little later than its lock file disappears, so wait for the process.
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

/** Whether a process with this pid runs. A zombie does not. */
export async function isAlive(pid: number): Promise<boolean> {
  return (await readCommandLine(pid)) !== ''
}

/** Whether the process in a lock file is a PostgreSQL server on this folder. */
async function runsOnFolder(cluster: string, lockText: string): Promise<boolean> {
  const [pid, folderAtStart] = lockText.split('\n')
  const folderArgument = / -D (.+?) -p \d/.exec(await readCommandLine(Number(pid)))?.[1]
  if (folderArgument === undefined) return false
  const folder = await stat(folderArgument).catch(() => undefined)
  // The folder was moved while the server ran in it.
  if (!folder) return folderArgument === folderAtStart
  // Compares the inode instead of the path, because a symbolic link may lead to the folder.
  const here = await stat(cluster)
  return folder.ino === here.ino && folder.dev === here.dev
}

/** Returns the program and arguments of a process, separated by spaces; empty when no such process runs. */
async function readCommandLine(pid: number): Promise<string> {
  if (!(pid > 0)) return ''
  if (process.platform === 'linux') {
    return (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).replaceAll('\0', ' ')
  }
  const { stdout } = await promisify(execFile)('ps', ['-o', 'args=', '-p', String(pid)]).catch(() => ({ stdout: '' }))
  return stdout.trim()
}
