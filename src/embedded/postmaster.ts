import { execFile } from 'node:child_process'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual, promisify } from 'node:util'
import { removeFile } from './foreign-folder.ts'
import { readClusterFile } from './read-cluster-file.ts'

/** A running PostgreSQL server, as its lock file `postmaster.pid` describes it. */
export type Postmaster = { pid: number; status: string; program: Program }

/** The real user id of a process, and its program with the arguments. */
type Program = { uid: number; words: string[] }

const LOCK_FILE = 'postmaster.pid'

/**
 * Returns the server that runs on a cluster's folder, or undefined if none runs. Does not find a server whose process
 * id is not visible here, because it runs in another container.
 */
export async function findPostmaster(cluster: string): Promise<Postmaster | undefined> {
  const text = await readClusterFile(cluster, LOCK_FILE).catch(() => undefined)
  if (!text) return undefined
  // Since PostgreSQL 10, the eight lines of the lock file are: pid, folder, start time, port, socket folder, address,
  // shared memory, status.
  const lines = text.split('\n').map(line => line.trim())
  const pid = Number(lines[0])
  const program = await readProgram(pid)
  if (!program || !(await runsOnFolder(cluster, program, lines[1]))) return undefined
  return { pid, status: lines[7] ?? 'starting', program }
}

/**
 * Removes the lock file of a cluster. The caller must own the data folder, and must know that no server runs on the
 * cluster. PostgreSQL itself ignores the file if no process has the pid in it. But if the file is empty or incomplete,
 * or if an unrelated process or a zombie has the pid, PostgreSQL refuses to start.
 */
export async function removeLockFile(cluster: string): Promise<void> {
  await removeFile(join(cluster, LOCK_FILE))
}

/** Stops a server that this process did not start. Takes at most 9 s. */
export async function stopPostmaster({ pid, program }: Postmaster): Promise<void> {
  // The lock file disappears shortly before the process ends, so the code below waits for the process. Another program
  // may get the same pid.
  await stopProcess(pid, async () => isDeepStrictEqual(await readProgram(pid), program))
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

/**
 * Returns whether a process is a PostgreSQL server on the cluster's folder. Only the owner of the cluster can run such
 * a server. The owner can also write the lock file, so a process of another user must never count as the server: root
 * would stop it.
 * @param folderAtStart the path of the folder in the lock file
 */
async function runsOnFolder(cluster: string, { uid, words }: Program, folderAtStart?: string): Promise<boolean> {
  const folderArgument = words[words.indexOf('-D') + 1]
  const clusterStats = await stat(cluster)
  if (uid !== clusterStats.uid || !words.includes('-D') || folderArgument === undefined) return false
  const folderStats = await stat(folderArgument).catch(() => undefined)
  // The path in the argument `-D` does not exist, so the folder has been moved since the server started. If the lock
  // file contains the same path, the lock file belongs to this server.
  if (!folderStats) return folderArgument === folderAtStart
  // Compares inodes instead of paths, because a symbolic link may lead to the folder.
  return folderStats.ino === clusterStats.ino && folderStats.dev === clusterStats.dev
}

/** Returns what a process runs. Returns undefined if no running process has this pid. */
async function readProgram(pid: number): Promise<Program | undefined> {
  if (!(pid > 0)) return undefined
  if (process.platform === 'linux') {
    const read = (name: string) => readFile(`/proc/${pid}/${name}`, 'utf8').catch(() => '')
    const [commandLine, status] = [await read('cmdline'), await read('status')]
    const uid = /^Uid:\s+(\d+)/m.exec(status)?.[1]
    // A zombie has no command line.
    return uid && commandLine ? { uid: Number(uid), words: commandLine.split('\0').slice(0, -1) } : undefined
  }
  const { stdout } = await promisify(execFile)('ps', ['-o', 'ruid=,args=', '-p', String(pid)]).catch(() => NOTHING)
  const [, uid, line = ''] = /^\s*(\d+)\s+(.*)/s.exec(stdout.trimEnd()) ?? []
  // `ps` separates the arguments by spaces. The folder may contain spaces, but it is the last argument.
  const [before = '', folder] = line.split(/ -D (.*)/s)
  if (uid === undefined) return undefined
  return { uid: Number(uid), words: [...before.split(' '), ...(folder === undefined ? [] : ['-D', folder])] }
}

const NOTHING = { stdout: '' }
