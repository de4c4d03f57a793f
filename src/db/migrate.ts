import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { Client } from './client.ts'
import type { Query } from './sql.ts'

const folder = new URL('../../migrations/', import.meta.url)

// Any constant works, as long as every Courtside process uses the same one.
const LOCK_KEY = 4_217_336_001

/** The first version with `nulls not distinct`, which our tables need. */
const MIN_MAJOR = 15

// While a migration waits for a lock, later statements wait behind it. So the migration gives up after LOCK_TIMEOUT_MS
// and retries for a minute. The timeout is below PostgreSQL's `deadlock_timeout` of 1 s; otherwise the deadlock check
// could cancel a statement of a process that serves.
const LOCK_TIMEOUT_MS = 500
const RETRY_DELAY_MS = 1_000
const MAX_ATTEMPTS = 40

/**
 * The queue library has its own schema. The `migration` table records the library's version, the one in package.json.
 */
export const QUEUE_MIGRATION = 'graphile-worker@0.18.0'

/**
 * Brings a database to the newest schema: our files in order, each in its own transaction, then the queue's schema.
 * Several processes may call it at once: an advisory lock makes the others wait, and they then find nothing to do.
 * @returns the names of the files that this call applied
 * @throws if PostgreSQL is too old; if the database is newer, so it has a migration that this program does not know; if
 *   a migration fails, or cannot get its locks within a minute
 */
export async function migrate(url: string): Promise<string[]> {
  const client = new Client({ connectionString: url, application_name: 'courtside-migrate' })
  // A lost connection also rejects the running statement, which reports it.
  client.on('error', () => {})
  await client.connect()
  try {
    await requireSupportedVersion(client)
    await client.query('select pg_advisory_lock($1)', [LOCK_KEY])
    await client.query(`create table if not exists migration (
      name text constraint migration_pkey primary key, applied_at timestamptz not null default now())`)
    const { files, queue } = await readPending(client)
    for (const name of files) await applyFile(client, name)
    if (queue) {
      // Our lock still holds, so only one process at a time migrates the queue.
      await migrateQueue(url)
      await client.query('insert into migration (name) values ($1)', [QUEUE_MIGRATION])
    }
    return files
  } finally {
    await client.end()
  }
}

async function requireSupportedVersion(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ version: string; major: number }>(
    `select current_setting('server_version') as version,
      current_setting('server_version_num')::integer / 10000 as major`,
  )
  const { version, major } = rows[0]!
  if (major < MIN_MAJOR) throw new Error(`PostgreSQL ${version} is too old; Courtside needs ${MIN_MAJOR} or newer.`)
}

async function migrateQueue(url: string): Promise<void> {
  // Loaded only when it is needed: a start with a current schema is ready sooner.
  const { Logger, runMigrations } = await import('graphile-worker')
  const quiet = new Logger(() => () => {})
  const pool = new pg.Pool({ connectionString: url, Client: Client as unknown as typeof pg.Client, max: 1 })
  pool.on('error', () => {})
  pool.on('connect', client => client.on('error', () => {}))
  await runMigrations({ pgPool: pool, logger: quiet }).finally(() => pool.end())
}

/** Whether the database has every migration that this program knows. One statement, for `/readyz`. */
export async function isMigrated(sql: Query): Promise<boolean> {
  const { files } = compareMigrations(await readApplied(sql), await listFiles())
  return files.length === 0
}

/** Whether `migrate` would do nothing and throw nothing. One statement, without a lock. */
export async function isCurrent(sql: Query): Promise<boolean> {
  const { files, queue, unknown } = compareMigrations(await readApplied(sql), await listFiles())
  return files.length === 0 && !queue && unknown.length === 0
}

async function readApplied(sql: Query): Promise<string[]> {
  try {
    return (await sql<{ name: string }>`select name from migration`).map(row => row.name)
  } catch (error) {
    // undefined_table: no migration has run.
    if ((error as { code?: string }).code === '42P01') return []
    throw error
  }
}

async function readPending(client: pg.Client): Promise<{ files: string[]; queue: boolean }> {
  const { rows } = await client.query<{ name: string }>('select name from migration')
  const { unknown, ...rest } = compareMigrations(
    rows.map(row => row.name),
    await listFiles(),
  )
  if (unknown.length > 0) {
    throw new Error(`The database is newer than this program: it has ${unknown.join(', ')}. Start the newer program.`)
  }
  return rest
}

/** Returns what is still to apply, and which applied migrations this program does not know. */
function compareMigrations(applied: string[], files: string[]) {
  const appliedNames = new Set(applied)
  return {
    files: files.filter(name => !appliedNames.has(name)),
    queue: !appliedNames.has(QUEUE_MIGRATION),
    unknown: applied.filter(name => (name.endsWith('.sql') ? !files.includes(name) : isNewerQueueMigration(name))),
  }
}

/** Whether a recorded version of the queue is later than ours. Earlier versions stay recorded. */
function isNewerQueueMigration(name: string): boolean {
  return name.localeCompare(QUEUE_MIGRATION, 'en', { numeric: true }) > 0
}

async function applyFile(client: pg.Client, name: string): Promise<void> {
  const text = await readFile(new URL(name, folder), 'utf8')
  for (let attempt = 1; ; attempt += 1) {
    try {
      await client.query('begin')
      await client.query(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`)
      await client.query(text)
      await client.query('insert into migration (name) values ($1)', [name])
      await client.query('commit')
      return
    } catch (cause) {
      await client.query('rollback')
      const isLocked = (cause as pg.DatabaseError).code === '55P03'
      if (isLocked && attempt < MAX_ATTEMPTS) {
        await delay(RETRY_DELAY_MS)
        continue
      }
      const reason = isLocked ? 'could not lock a table that another transaction (a dump?) uses' : 'failed'
      throw new Error(`Migration ${name} ${reason}; it was rolled back.`, { cause })
    }
  }
}

let knownFiles: Promise<string[]> | undefined

/** Returns the files of the first call: a newer program may be unpacked over this one while it runs. */
function listFiles(): Promise<string[]> {
  knownFiles ??= readdir(folder).then(names => names.filter(name => name.endsWith('.sql')).sort())
  return knownFiles
}
