import { readdir, readFile } from 'node:fs/promises'

// This file reads the CPU time and the memory of processes from /proc, so it works only on Linux. The times in /proc
// have the unit 1/USER_HZ, which is a hundredth of a second.
const USER_HZ = 100

/** Returns the CPU time that a process has used so far, in seconds. The time includes the work of the kernel. */
export async function readCpuSeconds(pid: number): Promise<number> {
  const { own } = await readTimes(pid)
  return own
}

/** Returns the CPU time of a process and of all its running and ended children, in seconds. */
export async function readTreeCpuSeconds(pid: number): Promise<number> {
  const { own, waitedFor } = await readTimes(pid)
  const living = (await listProcesses())
    .filter(({ parent }) => parent === pid)
    .reduce((sum, child) => sum + child.own, 0)
  return own + waitedFor + living
}

/** Returns the ids of the children of a process. */
export async function listChildren(pid: number): Promise<number[]> {
  return (await listProcesses()).filter(({ parent }) => parent === pid).map(child => child.pid)
}

async function listProcesses() {
  const pids = (await readdir('/proc')).filter(name => /^\d+$/.test(name)).map(Number)
  const gone = { parent: 0, own: 0, waitedFor: 0 }
  // A process may end before we read its times. Such a process then counts as 0.
  return Promise.all(pids.map(async pid => ({ pid, ...(await readTimes(pid).catch(() => gone)) })))
}

/** Returns the resident memory of a process in megabytes (10^6 bytes). */
export async function readMemoryMegabytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return (Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)![1]) * 1024) / 1e6
}

async function readTimes(pid: number): Promise<{ parent: number; own: number; waitedFor: number }> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
  // The second field is the name in parentheses, which may contain any character. The third field follows the `)`.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const field = (number: number) => Number(fields[number - 3])
  return { parent: field(4), own: (field(14) + field(15)) / USER_HZ, waitedFor: (field(16) + field(17)) / USER_HZ }
}
