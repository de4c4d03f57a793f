import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { Client } from './client.ts'
import { isUndefinedTable } from './errors.ts'
import { migrationLockKey } from './own-schema.ts'
import { parsePostgresUrl } from './postgres-url.ts'
import { splitStatements } from './split-statements.ts'
import type { Query } from './sql.ts'

const folder = new URL('../../migrations/', import.meta.url)

const LOCK_POLL_MS = 200

/** The first line of a migration whose statements must not run in a transaction, such as the build of an index. */
const OUTSIDE_TRANSACTION = '-- Outside a transaction.\n'

/** The first PostgreSQL version with `nulls not distinct`, which our tables need. */
const MIN_MAJOR = 15

// While a migration waits for the lock on a table, later statements on this table wait behind the migration. So the
// migration stops waiting after LOCK_TIMEOUT_MS and tries again, for up to a minute. LOCK_TIMEOUT_MS must be shorter
// than PostgreSQL's `deadlock_timeout` of 1 s. PostgreSQL looks for a deadlock when a statement has waited that long
// for a lock, and cancels this statement if it finds one. If LOCK_TIMEOUT_MS were longer, PostgreSQL could find a
// deadlock between the migration and a request, and cancel the statement of the request.
const LOCK_TIMEOUT_MS = 500
const RETRY_DELAY_MS = 1_000
const MAX_ATTEMPTS = 40

/**
 * Migrates a database to the newest schema. Applies our files in their order, each in its own transaction, unless the
 * file says otherwise. Several processes may call this function at the same time. An advisory lock makes the later
 * processes wait for the first process. When a later process gets the lock, it finds no pending migrations.
 * @returns the names of the files that this call applied
 * @throws if PostgreSQL is too old, or if the encoding of the database is not UTF8
 * @throws if the database has a migration that this program does not have
 * @throws if a migration fails or cannot get its locks within a minute
 */
export async function migrate(url: string): Promise<string[]> {
  const client = new Client({ connectionString: url, application_name: 'courtside-migrate' })
  await client.connect()
  try {
    // A database or a role can have other defaults, which would end the build of an index.
    await client.query('set statement_timeout = 0; set lock_timeout = 0')
    await requireSupportedDatabase(client)
    await waitForTurn(client, migrationLockKey(url))
    await createSchema(client, parsePostgresUrl(url).schema)
    await client.query(`create table if not exists migration (
      name text constraint migration_pkey primary key, applied_at timestamptz not null default now())`)
    const files = await readPending(client)
    for (const name of files) await applyFile(client, name)
    return files
  } finally {
    await client.end()
  }
}

/**
 * Takes the lock of the migrations. Polls, because a statement that waits for the lock would hold a snapshot. In
 * another process, the build of an index waits until all older snapshots have ended.
 */
async function waitForTurn(client: pg.Client, key: bigint): Promise<void> {
  for (;;) {
    const { rows } = await client.query<{ locked: boolean }>('select pg_try_advisory_lock($1) as locked', [key])
    if (rows[0]!.locked) return
    await delay(LOCK_POLL_MS)
  }
}

/** Creates the schema if it does not exist. If the schema exists, the role needs no right to create schemas. */
async function createSchema(client: pg.Client, schema: string): Promise<void> {
  const { rows } = await client.query('select from pg_namespace where nspname = $1', [schema])
  if (rows.length === 0) await client.query(`create schema ${pg.escapeIdentifier(schema)}`)
}

/**
 * Checks the version and the encoding of the database. In another encoding than UTF8, PostgreSQL counts and compares
 * bytes instead of characters, so texts would be cut within a character.
 */
async function requireSupportedDatabase(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ version: string; number: string; encoding: string }>(
    `select current_setting('server_version') as version, current_setting('server_version_num') as number,
      current_setting('server_encoding') as encoding`,
  )
  const { version, number, encoding } = rows[0]!
  if (Number(number) < MIN_MAJOR * 10_000)
    throw new Error(`PostgreSQL ${version} is too old; Courtside needs ${MIN_MAJOR} or newer.`)
  if (encoding !== 'UTF8') throw new Error(`The database has the encoding ${encoding}; Courtside needs UTF8.`)
}

/**
 * Returns whether the database has every migration file of this program. The function runs only one statement, because
 * `/readyz` calls it.
 */
export async function isMigrated(sql: Query): Promise<boolean> {
  const { files } = compareMigrations(await readApplied(sql), await listFiles())
  return files.length === 0
}

/** Returns whether `migrate` would have nothing to do and would not throw. Runs one statement and takes no lock. */
export async function isCurrent(sql: Query): Promise<boolean> {
  const { files, unknown } = compareMigrations(await readApplied(sql), await listFiles())
  return files.length === 0 && unknown.length === 0
}

async function readApplied(sql: Query): Promise<string[]> {
  try {
    return (await sql<{ name: string }>`select name from migration`).map(row => row.name)
  } catch (error) {
    if (isUndefinedTable(error)) return []
    throw error
  }
}

async function readPending(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>('select name from migration')
  const { unknown, files } = compareMigrations(
    rows.map(row => row.name),
    await listFiles(),
  )
  if (unknown.length > 0) {
    throw new Error(`The database is newer than this program: it has ${unknown.join(', ')}. Start the newer program.`)
  }
  return files
}

/** Returns the pending migrations, and the applied migrations that this program does not have. */
function compareMigrations(applied: string[], files: string[]) {
  const appliedNames = new Set(applied)
  return {
    files: files.filter(name => !appliedNames.has(name)),
    // The previous version recorded the version of its queue library here, as a name without `.sql`.
    unknown: applied.filter(name => name.endsWith('.sql') && !files.includes(name)),
  }
}

async function applyFile(client: pg.Client, name: string): Promise<void> {
  const text = await readFile(new URL(name, folder), 'utf8')
  const statements = splitStatements(text)
  if (text.startsWith(OUTSIDE_TRANSACTION)) return applyOutsideTransaction(client, name, statements)
  for (let attempt = 1; ; attempt += 1) {
    try {
      await client.query('begin')
      await client.query(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`)
      for (const statement of statements) await client.query(statement)
      await record(client, name)
      await client.query('commit')
      return
    } catch (cause) {
      await client.query('rollback')
      const isLocked = (cause as pg.DatabaseError).code === '55P03'
      if (isLocked && attempt < MAX_ATTEMPTS) {
        await delay(RETRY_DELAY_MS)
        continue
      }
      const reason = isLocked ? 'could not lock a table that another transaction uses (perhaps a dump)' : 'failed'
      throw new Error(`Migration ${name} ${reason}; it was rolled back: ${(cause as Error).message}`, { cause })
    }
  }
}

/**
 * Applies a migration that builds an index while other processes write. The build waits for running transactions
 * without blocking them, so it needs no lock timeout. If the build fails, it leaves an invalid index. Therefore the
 * first statement of such a file drops the index, and the next call of `migrate` repeats the file.
 */
async function applyOutsideTransaction(client: pg.Client, name: string, statements: string[]): Promise<void> {
  try {
    for (const statement of statements) await client.query(statement)
  } catch (cause) {
    throw new Error(`Migration ${name} failed; the next start repeats it: ${(cause as Error).message}`, { cause })
  }
  await record(client, name)
}

async function record(client: pg.Client, name: string): Promise<void> {
  await client.query('insert into migration (name) values ($1)', [name])
}

let knownFiles: Promise<string[]> | undefined

/**
 * Lists the migration files. Reads the folder only once per process, because an upgrade may replace the files while the
 * old process runs.
 */
function listFiles(): Promise<string[]> {
  knownFiles ??= readdir(folder).then(names => names.filter(name => name.endsWith('.sql')).sort())
  return knownFiles
}
