import { randomUUID } from 'node:crypto'
import { readFileSync, readlinkSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'

/** The process that owns a data folder, as its record `owner.json` describes it. */
export type Owner = {
  id: string
  role: 'service' | 'command'
  /** Whether the owner has begun to stop. */
  isStopping: boolean
  pid: number
  host: string
  /** Identifies a boot of a kernel. All containers of a machine share it. Undefined outside Linux. */
  boot: string | undefined
  /** Identifies the namespace in which `pid` is valid. Undefined outside Linux. */
  pidNamespace: string | undefined
  /** The number of times that the owner has rewritten its record. */
  beat: number
}

let place: Pick<Owner, 'host' | 'boot' | 'pidNamespace'> | undefined

/** Returns where this process runs. Reads these facts only once, because they do not change. */
function findPlace() {
  place ??= {
    host: hostname().slice(0, 100),
    boot: readOnLinux(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()),
    pidNamespace: readOnLinux(() => readlinkSync('/proc/self/ns/pid')),
  }
  return place
}

/** Returns a new record for this process. */
export function identify(role: Owner['role']): Owner {
  return { id: randomUUID(), role, isStopping: false, pid: process.pid, ...findPlace(), beat: 0 }
}

/** Returns whether the processes of two records run on the same kernel. If this is unknown, the result is false. */
export function shareKernel(one: Owner, other: Owner): boolean {
  return one.boot !== undefined && one.boot === other.boot
}

/** Returns whether an owner releases the folder within seconds. */
export function endsSoon({ role, isStopping }: Owner): boolean {
  return role === 'command' || isStopping
}

/** Returns the path of the file in which the owner of a folder describes itself. */
export function findRecordPath(folder: string): string {
  return join(folder, 'owner.json')
}

/** Reads the record of the process that owns or owned a folder. Returns undefined if there is no readable record. */
export async function readOwner(folder: string): Promise<Owner | undefined> {
  return parseOwner(await readFile(findRecordPath(folder), 'utf8').catch(() => ''))
}

/** Parses the text of a record. Returns undefined if it is empty or incomplete. */
export function parseOwner(text: string): Owner | undefined {
  try {
    return JSON.parse(text) as Owner
  } catch {
    return undefined
  }
}

/** Returns words that tell an operator where a process is: "process 12 in another container (host name web-1)". */
export function describeOwner({ pid, host, boot, pidNamespace }: Owner): string {
  const here = findPlace()
  if (boot !== here.boot || (boot === undefined && host !== here.host)) return `process ${pid} on the host ${host}`
  return pidNamespace === here.pidNamespace
    ? `process ${pid}`
    : `process ${pid} in another container (host name ${host})`
}

function readOnLinux(read: () => string): string | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}
