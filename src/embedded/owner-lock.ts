import { constants } from 'node:fs'
import { link, open, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import { lockFile } from './lock-file.ts'
import {
  describeOwner,
  endsSoon,
  findRecordPath,
  identify,
  type Owner,
  parseOwner,
  readOwner,
  shareKernel,
} from './owner.ts'

/** The owner rewrites its record at this interval. */
const BEAT_MS = 1_000
/**
 * A process on another machine may own the folder if its record changes within this time. An owner under load writes at
 * least one of five beats.
 */
const OBSERVATION_MS = 5_000
/** A start waits this long for an owner that is about to end. */
const OWNER_END_MS = 10_000

/** The right to run PostgreSQL on a data folder. Only one process has this right. */
export type OwnerLock = {
  /** Aborts if another process has taken the folder, because this process was paused for longer than others wait. */
  lost: AbortSignal
  /** Tells other processes that this process is about to stop, so they wait for its end. */
  announceStop(): Promise<void>
  release(): Promise<void>
}

/** The error of a process that needs a data folder which another process owns. */
export class FolderInUseError extends Error {
  constructor(folder: string, owner: Owner | string | undefined) {
    const name = typeof owner === 'object' ? describeOwner(owner) : (owner ?? 'another process')
    super(`The data folder ${folder} is in use by ${name}. Stop that process, or set another DATA_DIR.`)
  }
}

/**
 * Makes this process the owner of a data folder. Two mechanisms decide who owns the folder:
 *
 * - A lock of the operating system on the file `owner.lock`. It applies to all namespaces and containers of one kernel,
 *   and between the machines of most network file systems. The kernel frees it when the process ends, even after
 *   SIGKILL.
 * - A record in the file `owner.json`, which the owner rewrites every second. It covers machines that share the folder
 *   through a file system without locks.
 *
 * So a start waits only if the record comes from another boot, or if the file system has no locks. In these cases it
 * watches the record for 5 s.
 * @param role whether this process is a command or a service. Other processes wait up to 10 s for the lock of a
 *   command, or of a service that is stopping
 * @throws FolderInUseError if another process owns the folder
 */
export async function acquireOwnerLock(
  folder: string,
  role: Owner['role'],
  log: FastifyBaseLogger,
): Promise<OwnerLock> {
  const lock = await lockWhenOwnerEnds(folder)
  try {
    const self = identify(role)
    await writeRecord(folder, self, lock.isSupported)
    const holder = { folder, self, hasLock: lock.isSupported, log, lost: new AbortController(), failures: 0 }
    const timer = setInterval(() => void renew(holder), BEAT_MS).unref()
    return {
      lost: holder.lost.signal,
      async announceStop() {
        self.isStopping = true
        await renew(holder)
      },
      async release() {
        clearInterval(timer)
        const current = await readOwner(folder)
        if (current?.id === self.id) await rm(findRecordPath(folder), { force: true })
        lock.release()
      },
    }
  } catch (error) {
    lock.release()
    throw error
  }
}

/** Takes the lock of the operating system. @throws FolderInUseError */
async function lockWhenOwnerEnds(folder: string) {
  for (let waitedMs = 0; ; waitedMs += 100) {
    const lock = await lockFile(join(folder, 'owner.lock'))
    if (lock) return lock
    const owner = await readOwner(folder)
    // An owner that has just taken the lock has not written its record yet.
    const mayWait = owner ? endsSoon(owner) && waitedMs < OWNER_END_MS : waitedMs < BEAT_MS
    if (!mayWait) throw new FolderInUseError(folder, owner)
    await delay(100)
  }
}

/**
 * Writes the record of this process, unless a process on another machine owns the folder.
 * @param hasLock whether the lock of the operating system works on this file system
 * @throws FolderInUseError
 */
async function writeRecord(folder: string, self: Owner, hasLock: boolean): Promise<void> {
  const draft = `${findRecordPath(folder)}.${self.id}`
  await writeFile(draft, format(self), { mode: 0o600, flag: 'wx' })
  try {
    const previous = await readRecord(folder)
    if (previous === undefined) return await linkRecord(folder, draft)
    const owner = await readOwner(folder)
    // Processes of one boot share a kernel. So the lock of the operating system has already decided between them.
    if (hasLock && owner && shareKernel(owner, self)) return await rename(draft, findRecordPath(folder))
    await watch(folder, previous)
    await removeRecord(folder, self, previous)
    await linkRecord(folder, draft)
    // Another machine may have watched the same record, and then replaced our record by its own.
    await delay(2 * BEAT_MS)
    const current = await readOwner(folder)
    if (current?.id !== self.id) throw new FolderInUseError(folder, current)
  } finally {
    await rm(draft, { force: true })
  }
}

/** Creates the record, unless a record exists. A hard link is atomic on network file systems too. */
async function linkRecord(folder: string, draft: string): Promise<void> {
  await link(draft, findRecordPath(folder)).catch(async error => {
    throw error.code === 'EEXIST' ? new FolderInUseError(folder, await readOwner(folder)) : error
  })
}

/** Waits until the record has not changed for OBSERVATION_MS. @throws FolderInUseError if the record changes */
async function watch(folder: string, previous: string): Promise<void> {
  for (let waitedMs = 0; waitedMs < OBSERVATION_MS; waitedMs += 250) {
    await delay(250)
    const current = await readRecord(folder)
    if (current !== undefined && current !== previous) throw new FolderInUseError(folder, await readOwner(folder))
  }
}

/** Removes the record of a dead owner. If another process has replaced this record, puts its record back. */
async function removeRecord(folder: string, self: Owner, previous: string): Promise<void> {
  const removed = `${findRecordPath(folder)}.removed-${self.id}`
  try {
    await rename(findRecordPath(folder), removed)
    if ((await readFile(removed, 'utf8')) === previous) return
    await linkRecord(folder, removed)
    throw new FolderInUseError(folder, await readOwner(folder))
  } catch (error) {
    // Another process has removed the record first.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  } finally {
    await rm(removed, { force: true })
  }
}

type Locked = { folder: string; self: Owner; hasLock: boolean }
type Holder = Locked & { log: FastifyBaseLogger; lost: AbortController; failures: number }

/** Renews the record. If the record is now that of another process, aborts `lost`. */
async function renew(holder: Holder): Promise<void> {
  try {
    await beat(holder)
    holder.failures = 0
  } catch (error) {
    if (holder.lost.signal.aborted) return
    if (error instanceof FolderInUseError) return holder.lost.abort(error)
    // A later beat may succeed, so only the first failure is logged.
    holder.failures += 1
    if (holder.failures === 1) holder.log.warn({ err: error }, 'could not renew owner.json in the data folder')
  }
}

/**
 * Rewrites the record in place. This takes no disk space, so a full disk does not stop the beat. The file is opened and
 * closed at each beat, because network file systems send the data to their server at the close. With the lock of the
 * operating system, this process is the owner even if the record is missing or unreadable, so the beat restores it.
 */
async function beat({ folder, self, hasLock }: Locked): Promise<void> {
  const handle = await open(findRecordPath(folder), constants.O_RDWR | (hasLock ? constants.O_CREAT : 0), 0o600)
  try {
    const current = parseOwner(await handle.readFile('utf8'))
    if (current && current.id !== self.id) throw new FolderInUseError(folder, current)
    if (!current && !hasLock) throw new Error('owner.json contains no record')
    self.beat += 1
    await handle.write(format(self), 0)
  } finally {
    await handle.close()
  }
}

/** Formats a record with a fixed length, so a beat overwrites the whole previous text. */
function format(owner: Owner): string {
  return `${JSON.stringify(owner).padEnd(500)}\n`
}

async function readRecord(folder: string): Promise<string | undefined> {
  return readFile(findRecordPath(folder), 'utf8').catch(error => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
}
