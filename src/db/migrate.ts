import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { Client } from './client.ts'
import type { Query } from './sql.ts'

const folder = new URL('../../migrations/', import.meta.url)

// Any constant will do, as long as every Courtside process takes the same one.
const LOCK = 4_217_336_001

/** The first to know `nulls not distinct`, which our tables need. */
const MIN_MAJOR = 15

// While a migration waits for a lock, whoever comes later waits behind it: so it steps back, and tries again for a minute. And
// sooner than PostgreSQL looks for deadlocks, after a second, or it could end one of those who serve.
const LOCK_MS = 500
const RETRY_MS = 1_000
const TRIES = 40

/** The queue brings a schema of its own; that of this version, as package.json has it, is noted beside our files. */
export const QUEUE = 'graphile-worker@0.18.0'

/**
 * Brings a database to the newest schema: our files in order, each in its own transaction, then the queue's schema.
 * Safe to start twice at once: an advisory lock makes the second one wait, then find nothing to do.
 * @returns the names of the files applied now
 * @throws if PostgreSQL is too old; if a file or a queue landed that this program doesn't have, that is, the database is newer; or
 *   if a migration fails, or gets its locks not even in a minute
 */
export async function migrate(url: string): Promise<string[]> {
  const client = new Client({ connectionString: url, application_name: 'courtside-migrate' })
  // What breaks the connection is seen by the statement that runs.
  client.on('error', () => {})
  await client.connect()
  try {
    await refuseOld(client)
    await client.query('select pg_advisory_lock($1)', [LOCK])
    await client.query(`create table if not exists migration (
      name text constraint migration_pkey primary key, applied_at timestamptz not null default now())`)
    const { files, queue } = await pending(client)
    for (const name of files) await apply(client, name)
    if (queue) {
      // Under our lock, it too is migrated by one process at a time.
      await migrateQueue(url)
      await client.query('insert into migration (name) values ($1)', [QUEUE])
    }
    return files
  } finally {
    await client.end()
  }
}

async function refuseOld(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ version: string; major: number }>(
    "select current_setting('server_version') as version, current_setting('server_version_num')::integer / 10000 as major",
  )
  const { version, major } = rows[0]!
  if (major < MIN_MAJOR) throw new Error(`PostgreSQL ${version} is too old; Courtside needs ${MIN_MAJOR} or newer.`)
}

async function migrateQueue(url: string): Promise<void> {
  // Loaded for this alone: a start that finds all in place is the sooner ready.
  const { Logger, runMigrations } = await import('graphile-worker')
  const quiet = new Logger(() => () => {})
  const pool = new pg.Pool({ connectionString: url, Client: Client as unknown as typeof pg.Client, max: 1 })
  pool.on('error', () => {})
  pool.on('connect', client => client.on('error', () => {}))
  await runMigrations({ pgPool: pool, logger: quiet }).finally(() => pool.end())
}

/** Whether every migration this program knows has been applied. One statement, for `/readyz`. */
export async function isMigrated(sql: Query): Promise<boolean> {
  const { files } = outstanding(await landed(sql), await migrationFiles())
  return files.length === 0
}

/** Whether `migrate` would find nothing to do, nor to refuse. One statement, and no lock. */
export async function isCurrent(sql: Query): Promise<boolean> {
  const { files, queue, unknown } = outstanding(await landed(sql), await migrationFiles())
  return files.length === 0 && !queue && unknown.length === 0
}

async function landed(sql: Query): Promise<string[]> {
  try {
    return (await sql<{ name: string }>`select name from migration`).map(row => row.name)
  } catch (error) {
    // undefined_table: not even begun.
    if ((error as { code?: string }).code === '42P01') return []
    throw error
  }
}

async function pending(client: pg.Client): Promise<{ files: string[]; queue: boolean }> {
  const { rows } = await client.query<{ name: string }>('select name from migration')
  const { unknown, ...rest } = outstanding(
    rows.map(row => row.name),
    await migrationFiles(),
  )
  if (unknown.length > 0) {
    throw new Error(`The database is newer than this program: it has ${unknown.join(', ')}. Start the newer program.`)
  }
  return rest
}

/** What is left to do, and what landed that this program doesn't know. */
function outstanding(landed: string[], files: string[]) {
  const done = new Set(landed)
  return {
    files: files.filter(name => !done.has(name)),
    queue: !done.has(QUEUE),
    unknown: landed.filter(name => (name.endsWith('.sql') ? !files.includes(name) : isNewerQueue(name))),
  }
}

/** Whether a queue's name is of a later version than ours; those before it stay noted. */
function isNewerQueue(name: string): boolean {
  return name.localeCompare(QUEUE, 'en', { numeric: true }) > 0
}

async function apply(client: pg.Client, name: string): Promise<void> {
  const text = await readFile(new URL(name, folder), 'utf8')
  for (let attempt = 1; ; attempt += 1) {
    try {
      await client.query('begin')
      await client.query(`set local lock_timeout = ${LOCK_MS}`)
      await client.query(text)
      await client.query('insert into migration (name) values ($1)', [name])
      await client.query('commit')
      return
    } catch (cause) {
      await client.query('rollback')
      const isLocked = (cause as pg.DatabaseError).code === '55P03'
      if (isLocked && attempt < TRIES) {
        await delay(RETRY_MS)
        continue
      }
      const why = isLocked ? 'waited for a table that another transaction (a dump?) holds' : 'failed'
      throw new Error(`Migration ${name} ${why}; nothing of it was kept.`, { cause })
    }
  }
}

let filesAtStart: Promise<string[]> | undefined

/** Those this process began with: a newer program may be unpacked over it while it runs. */
function migrationFiles(): Promise<string[]> {
  filesAtStart ??= readdir(folder).then(names => names.filter(name => name.endsWith('.sql')).sort())
  return filesAtStart
}
