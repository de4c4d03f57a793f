import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import pg from 'pg'

// Any constant will do, as long as every Courtside process takes the same one.
const LOCK = 4_217_336_003

/** That this process is the one that stops the embedded database. */
export type Ownership = { release(): Promise<void> }

/**
 * Takes the lock that makes this process the owner of an embedded database, creating our database where it is missing. The
 * lock lives in a session, so it dies with the process, however that ends.
 * @throws when another living process has it
 */
export async function own(url: string, folder: string, log: FastifyBaseLogger): Promise<Ownership> {
  let released = false
  let client = await locked(url, folder)

  function watch(): void {
    client.on('error', () => {})
    client.once('end', () => void regain())
  }

  /** A session can be lost while the process lives (the server recovers from a crash): then the lock is taken again. */
  async function regain(): Promise<void> {
    for (let attempt = 1; !released; attempt += 1) {
      await delay(250, undefined, { ref: false })
      try {
        client = await locked(url, folder)
        return watch()
      } catch {
        if (attempt % 100 === 0) log.error('the embedded database cannot be reached')
      }
    }
  }

  watch()
  return {
    async release() {
      released = true
      await client.end().catch(() => {})
    },
  }
}

async function locked(url: string, folder: string): Promise<pg.Client> {
  const client = await connected(url)
  const { rows } = await client.query('select pg_try_advisory_lock($1) as taken', [LOCK])
  if (rows[0].taken) return client
  const { rows: holders } = await client.query(
    `select application_name from pg_stat_activity join pg_locks using (pid)
    where locktype = 'advisory' and objid = $1::bigint and granted`,
    [LOCK % 2 ** 32],
  )
  await client.end()
  const holder = holders[0]?.application_name.replace('courtside-owner-', 'process ') ?? 'another process'
  throw new Error(`The data folder ${folder} is in use by ${holder}. Stop it, or set another DATA_DIR.`)
}

async function connected(url: string): Promise<pg.Client> {
  const client = () => new pg.Client({ connectionString: url, application_name: `courtside-owner-${process.pid}` })
  const first = client()
  try {
    await first.connect()
    return first
  } catch (error) {
    if ((error as pg.DatabaseError).code !== '3D000') throw error
  }
  const admin = new pg.Client({ connectionString: Object.assign(new URL(url), { pathname: '/postgres' }).href })
  await admin.connect()
  await admin.query('create database courtside').catch(error => {
    // Another process was quicker.
    if (!['42P04', '23505'].includes(error.code)) throw error
  })
  await admin.end()
  const second = client()
  await second.connect()
  return second
}
