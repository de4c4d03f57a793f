import { execFile } from 'node:child_process'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** A running PostgreSQL server, as its lock file tells. */
export type Postmaster = { pid: number; port: number; status: string }

/**
 * The server that runs on a cluster's folder, or undefined. A lock file whose process is gone, or whose number another
 * program has now, is removed: by itself PostgreSQL would take any process of that number for a server.
 */
export async function findPostmaster(cluster: string): Promise<Postmaster | undefined> {
  const path = join(cluster, 'postmaster.pid')
  const text = await readFile(path, 'utf8').catch(() => undefined)
  if (text === undefined) return undefined
  const lines = text.split('\n').map(line => line.trim())
  // Pid, folder, start, port, socket, address, shared memory, status: in this order since PostgreSQL 10.
  const pid = Number(lines[0])
  if (!pid) return undefined
  if (isAlive(pid) && (await commandOf(pid)).includes(cluster)) {
    return { pid, port: Number(lines[3]), status: lines[7] ?? 'starting' }
  }
  // Only the very file that was read; a new server may have written its own by now.
  if ((await readFile(path, 'utf8').catch(() => undefined)) === text) await rm(path, { force: true })
  return undefined
}

/** Whether a process of this number runs; a zombie doesn't. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

async function commandOf(pid: number): Promise<string> {
  const proc = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => undefined)
  if (proc !== undefined) return proc
  // Not Linux.
  const { stdout } = await promisify(execFile)('ps', ['-o', 'args=', '-p', String(pid)]).catch(() => ({ stdout: '' }))
  return stdout
}
