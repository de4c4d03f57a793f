import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { connect, type Database, type Query } from '../../src/db/sql.ts'

const cluster = process.env.TEST_DATABASE_URL
if (!cluster) {
  throw new Error(
    'TEST_DATABASE_URL is not set. `npm test` and `npm test -- test/some.test.ts` start PostgreSQL and set it.',
  )
}

export type TestDatabase = { url: string; sql: Database; drop(): Promise<void> }

/**
 * Creates a database as a copy of the template database, which contains the tables of all migrations. The copy takes
 * about 50 ms. The returned function `drop` closes `sql` and drops the database. It fails if the database still has
 * other connections.
 */
export async function testDatabase(): Promise<TestDatabase> {
  const name = `t_${randomBytes(6).toString('hex')}`
  await administer(`create database ${name} template ${process.env.TEST_TEMPLATE}`)
  const url = Object.assign(new URL(cluster!), { pathname: `/${name}` }).href
  const sql = connect(url, { name: 'test' })
  return {
    url,
    sql,
    async drop() {
      await sql.close()
      await administer(`drop database ${name}`)
    },
  }
}

/**
 * Returns whether a statement that matches the regular expression `pattern` waits for a lock in the database of `sql`.
 */
export async function waitsForLock(sql: Query, pattern = ''): Promise<boolean> {
  const [row] = await sql<{ waits: boolean }>`
    select exists (
      select from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query ~ ${pattern}
    ) as waits`
  return row!.waits
}

/** Runs one statement as the superuser of the cluster, outside the test databases. */
export async function administer(statement: string): Promise<void> {
  await query(cluster!, statement)
}

/** Runs a statement on a separate connection, in the schema of the service. @returns the rows */
export async function query(url: string, statement: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query('set search_path = courtside, public')
    return (await client.query(statement)).rows
  } finally {
    await client.end()
  }
}
