import { execFile } from 'node:child_process'
import { readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'

/** A running PostgreSQL server, as its lock file tells. */
export type Postmaster = { pid: number; port: number; status: string }

const lockFile = (cluster: string) => join(cluster, 'postmaster.pid')

/** The server that runs on a cluster's folder, or undefined. Changes nothing. */
export async function findPostmaster(cluster: string): Promise<Postmaster | undefined> {
  const text = await readFile(lockFile(cluster), 'utf8').catch(() => undefined)
  if (!text || !(await isServerOf(cluster, text))) return undefined
  // Pid, folder, start, port, socket, address, shared memory, status: in this order since PostgreSQL 10.
  const lines = text.split('\n').map(line => line.trim())
  return { pid: Number(lines[0]), port: Number(lines[3]), status: lines[7] ?? 'starting' }
}

/**
 * Removes a lock file that names no server of this folder. PostgreSQL deals by itself with a number that nobody has; another
 * program of that number, or a dead process that nobody has waited for, it takes for a server and refuses to start.
 */
export async function clearStaleLock(cluster: string): Promise<void> {
  const path = lockFile(cluster)
  const text = await readFile(path, 'utf8').catch(() => undefined)
  if (!text || (await isServerOf(cluster, text))) return
  // Moved away before it is removed: what another process's new server has written meanwhile is put back.
  const aside = `${path}.${process.pid}`
  await rename(path, aside).catch(() => {})
  const moved = await readFile(aside, 'utf8').catch(() => text)
  await (moved === text ? rm(aside, { force: true }) : rename(aside, path))
}

/** Ends a server within 9 s, the harder the longer it takes. */
export async function endPostmaster(cluster: string, { pid }: Postmaster): Promise<void> {
  const steps = [
    // Fast: sessions are ended, nothing is lost.
    { signal: 'SIGINT', patienceMs: 3_000 },
    // Immediate: as after a crash, with recovery at the next start. After 5 s it kills the children that don't listen.
    { signal: 'SIGQUIT', patienceMs: 5_500 },
    { signal: 'SIGKILL', patienceMs: 500 },
  ] as const
  if ((await findPostmaster(cluster))?.pid !== pid) return
  // Until the process is gone, which is a little after its lock file.
  const command = await commandOf(pid)
  const runs = async () => (await commandOf(pid)) === command
  for (const { signal, patienceMs } of steps) {
    if (!(await runs())) return
    try {
      process.kill(pid, signal)
    } catch {
      return
    }
    for (let waitedMs = 0; waitedMs < patienceMs && (await runs()); waitedMs += 10) await delay(10)
  }
}

/** Whether a process of this number runs; one that has ended and that nobody has waited for doesn't. */
export async function isAlive(pid: number): Promise<boolean> {
  return (await commandOf(pid)) !== ''
}

/** Whether the process that a lock file names is a server, and on this very folder. */
async function isServerOf(cluster: string, lock: string): Promise<boolean> {
  const [pid, folderAtStart] = lock.split('\n')
  const given = / -D (.+?) -p \d/.exec(await commandOf(Number(pid)))?.[1]
  if (given === undefined) return false
  const folder = await stat(given).catch(() => undefined)
  // It was moved since, with the server in it.
  if (!folder) return given === folderAtStart
  // By identity, not by name: a link may lead here too.
  const here = await stat(cluster)
  return folder.ino === here.ino && folder.dev === here.dev
}

/** The program and arguments of a process, between spaces; empty when there is none. */
async function commandOf(pid: number): Promise<string> {
  if (!(pid > 0)) return ''
  if (process.platform === 'linux') {
    return (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).replaceAll('\0', ' ')
  }
  const { stdout } = await promisify(execFile)('ps', ['-o', 'args=', '-p', String(pid)]).catch(() => ({ stdout: '' }))
  return stdout.trim()
}
