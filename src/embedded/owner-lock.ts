import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import pg from 'pg'
import { isAlive } from './postmaster.ts'

// The key of the advisory lock. The number is arbitrary, but every Courtside process must use the same number.
const LOCK_KEY = 4_217_336_003
const APPLICATION_NAME_PREFIX = 'courtside-owner-'
// If the owner is killed, PostgreSQL ends the owner's database session within this time.
const OWNER_EXIT_MS = 5_000

/** The right to stop the embedded database. Only one process has this right. */
export type OwnerLock = {
  /**
   * Marks the lock as released. If this process loses the lock after this call, it does not take the lock again.
   * PostgreSQL frees the lock when the server stops.
   * @returns whether this process still owns the server
   */
  release(): boolean
}

/**
 * Takes the advisory lock that makes this process the owner of an embedded database. If the database `courtside` is
 * missing, creates it first. The lock belongs to a database session, so PostgreSQL frees the lock when the process
 * ends, even after SIGKILL.
 * @throws if another running process holds the lock
 */
export async function acquireOwnerLock(url: string, folder: string, log: FastifyBaseLogger): Promise<OwnerLock> {
  let isReleased = false
  let isLost = false

  function reacquireAtEnd(client: pg.Client): void {
    client.once('end', () => void reacquire())
  }

  /**
   * Takes the lock again after the database session of the lock has ended, for example because the server recovers from
   * a crash.
   */
  async function reacquire(): Promise<void> {
    for (let attempt = 1; !isReleased; attempt += 1) {
      try {
        const client = await takeLock(url, folder)
        if (isReleased) await client.end()
        else reacquireAtEnd(client)
        return
      } catch (error) {
        isLost = error instanceof FolderInUseError
        if (isLost) return log.error({ err: error }, 'another process now owns the embedded database')
        if (attempt % 100 === 0) log.error('the embedded database is unreachable')
      }
      await delay(250, undefined, { ref: false })
    }
  }

  reacquireAtEnd(await takeLock(url, folder))
  return {
    release() {
      isReleased = true
      return !isLost
    },
  }
}

class FolderInUseError extends Error {
  constructor(folder: string, owner: string) {
    super(`The data folder ${folder} is in use by ${owner}. Stop that process, or set another DATA_DIR.`)
  }
}

/**
 * Takes the lock in a new database session.
 * @returns the client of this database session
 * @throws FolderInUseError if another process holds the lock
 */
async function takeLock(url: string, folder: string): Promise<pg.Client> {
  const client = await openSession(url)
  try {
    for (let waitedMs = 0; ; waitedMs += 20) {
      const { rows } = await client.query('select pg_try_advisory_lock($1) as taken', [LOCK_KEY])
      if (rows[0].taken) return client
      const pid = await findOwnerPid(client)
      if (pid && (await isAlive(pid))) throw new FolderInUseError(folder, `process ${pid}`)
      if (waitedMs >= OWNER_EXIT_MS) throw new FolderInUseError(folder, 'another process')
      await delay(20)
    }
  } catch (error) {
    await client.end()
    throw error
  }
}

async function findOwnerPid(client: pg.Client): Promise<number | undefined> {
  const { rows } = await client.query(
    `select application_name as name from pg_stat_activity join pg_locks using (pid)
    where locktype = 'advisory' and objid = $1 and granted`,
    [LOCK_KEY],
  )
  return rows[0] && Number(rows[0].name.replace(APPLICATION_NAME_PREFIX, ''))
}

async function openSession(url: string): Promise<pg.Client> {
  try {
    return await connect(url)
  } catch (error) {
    if ((error as pg.DatabaseError).code !== '3D000') throw error
  }
  const admin = await connect(Object.assign(new URL(url), { pathname: '/postgres' }).href)
  try {
    await admin.query('create database courtside')
  } catch (error) {
    // Another process has created the database first.
    if (!['42P04', '23505'].includes((error as pg.DatabaseError).code ?? '')) throw error
  } finally {
    await admin.end()
  }
  return connect(url)
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, application_name: `${APPLICATION_NAME_PREFIX}${process.pid}` })
  // Without this listener an error would end the process. After each error, the client emits the event `end`.
  client.on('error', () => {})
  await client.connect()
  return client
}
