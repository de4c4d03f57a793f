import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import pg from 'pg'
import { isAlive } from './postmaster.ts'

// Any constant will do, as long as every Courtside process takes the same one.
const LOCK = 4_217_336_003
const NAME = 'courtside-owner-'
// How long the session of a killed owner may take to notice.
const OWNER_EXIT_MS = 5_000

/** That this process is the one that stops the embedded database. */
export type OwnerLock = {
  /** Lets the lock go with the server that is about to be ended. @returns whether it is still ours to end */
  release(): boolean
}

/**
 * Takes the lock that makes this process the owner of an embedded database, creating our database where it is missing. The
 * lock lives in a session, so it dies with the process, however that ends.
 * @throws when another living process has it
 */
export async function acquireOwnerLock(url: string, folder: string, log: FastifyBaseLogger): Promise<OwnerLock> {
  let resigned = false
  let lost = false

  function watch(client: pg.Client): void {
    client.once('end', () => void regain())
  }

  /** A session can be lost while the process lives (the server recovers from a crash): then the lock is taken again. */
  async function regain(): Promise<void> {
    for (let attempt = 1; !resigned; attempt += 1) {
      try {
        const client = await locked(url, folder)
        if (resigned) await client.end()
        else watch(client)
        return
      } catch (error) {
        lost = error instanceof InUse
        if (lost) return log.error({ err: error }, 'another process has taken the embedded database over')
        if (attempt % 100 === 0) log.error('the embedded database cannot be reached')
      }
      await delay(250, undefined, { ref: false })
    }
  }

  watch(await locked(url, folder))
  return {
    release() {
      resigned = true
      return !lost
    },
  }
}

class InUse extends Error {
  constructor(folder: string, holder: string) {
    super(`The data folder ${folder} is in use by ${holder}. Stop it, or set another DATA_DIR.`)
  }
}

/** @returns the session that holds the lock */
async function locked(url: string, folder: string): Promise<pg.Client> {
  const client = await connected(url)
  try {
    for (let waitedMs = 0; ; waitedMs += 20) {
      const { rows } = await client.query('select pg_try_advisory_lock($1) as taken', [LOCK])
      if (rows[0].taken) return client
      const pid = await holder(client)
      if (pid && (await isAlive(pid))) throw new InUse(folder, `process ${pid}`)
      if (waitedMs >= OWNER_EXIT_MS) throw new InUse(folder, 'another process')
      await delay(20)
    }
  } catch (error) {
    await client.end()
    throw error
  }
}

async function holder(client: pg.Client): Promise<number | undefined> {
  const { rows } = await client.query(
    `select application_name as name from pg_stat_activity join pg_locks using (pid)
    where locktype = 'advisory' and objid = $1 and granted`,
    [LOCK],
  )
  return rows[0] && Number(rows[0].name.replace(NAME, ''))
}

async function connected(url: string): Promise<pg.Client> {
  try {
    return await open(url)
  } catch (error) {
    if ((error as pg.DatabaseError).code !== '3D000') throw error
  }
  const admin = await open(Object.assign(new URL(url), { pathname: '/postgres' }).href)
  try {
    await admin.query('create database courtside')
  } catch (error) {
    // Another process was quicker.
    if (!['42P04', '23505'].includes((error as pg.DatabaseError).code ?? '')) throw error
  } finally {
    await admin.end()
  }
  return open(url)
}

async function open(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, application_name: `${NAME}${process.pid}` })
  // What breaks a session is seen by its end.
  client.on('error', () => {})
  await client.connect()
  return client
}
