import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { test } from 'node:test'
import pg from 'pg'
import { migrate } from '../src/db/migrate.ts'
import { administer, testDatabase } from './support/database.ts'
import { startProxy } from './support/proxy.ts'
import { describeSchema } from './support/schema.ts'

const SCHEMA_FILE = new URL('../docs/schema.txt', import.meta.url)

test('the migrated schema equals docs/schema.txt', async () => {
  const database = await testDatabase()
  const schema = await describeSchema(database.sql)
  await database.drop()
  if (process.env.UPDATE_SCHEMA) await writeFile(SCHEMA_FILE, schema)
  const documented = await readFile(SCHEMA_FILE, 'utf8')
  assert.equal(schema, documented, 'docs/schema.txt is out of date: UPDATE_SCHEMA=1 npm test -- test/schema.test.ts')
})

test('if five processes migrate at the same time, one migrates the database and the others do nothing', async () => {
  for (let round = 0; round < 3; round += 1) {
    const name = `migrate_${process.pid}_${round}`
    await administer(`create database ${name}`)
    const url = Object.assign(new URL(process.env.TEST_DATABASE_URL!), { pathname: `/${name}` }).href
    const applied = await Promise.all(Array.from({ length: 5 }, () => migrate(url)))
    assert.equal(applied.filter(names => names.length > 0).length, 1)
    assert.deepEqual(await migrate(url), [])
    await administer(`drop database ${name}`)
  }
})

test('`migrate` refuses a database with a newer migration', async () => {
  const database = await testDatabase()
  // The previous version recorded the version of its queue library too. This name must not count as a migration.
  await database.sql`insert into migration (name) values ('9999_later.sql'), ('graphile-worker@0.18.0')`
  await assert.rejects(migrate(database.url), /newer than this program: it has 9999_later\.sql\./)
  await database.drop()
})

test('`migrate` refuses a database whose encoding is not UTF8', async () => {
  const name = `t_ascii_${process.pid}`
  await administer(`create database ${name} template template0 encoding 'SQL_ASCII' locale 'C'`)
  try {
    const url = Object.assign(new URL(process.env.TEST_DATABASE_URL!), { pathname: `/${name}` }).href
    await assert.rejects(migrate(url), /^Error: The database has the encoding SQL_ASCII; Courtside needs UTF8\.$/)
  } finally {
    await administer(`drop database ${name}`)
  }
})

test('`migrate` refuses a PostgreSQL server that is too old, with an error that names both versions', async t => {
  const database = await testDatabase()
  t.after(() => database.drop())
  const [row] = await database.sql<{ version: string; number: string }>`
    select current_setting('server_version') as version, current_setting('server_version_num') as number`
  // The proxy changes the version in the server's replies.
  const makeOld = (text: string) => text.replace(/^1\d/, '14')
  const proxy = await startProxy(new URL(database.url), reply =>
    [row!.version, row!.number].reduce((text, version) => text.replaceAll(version, makeOld(version)), reply),
  )
  t.after(proxy.close)
  await assert.rejects(migrate(proxy.url), /^Error: PostgreSQL 14\.\d+.* is too old; Courtside needs 15 or newer\.$/)
})

test('a failed migration is rolled back', async () => {
  const name = `failing_${process.pid}`
  await administer(`create database ${name}`)
  const url = Object.assign(new URL(process.env.TEST_DATABASE_URL!), { pathname: `/${name}` }).href
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query('create schema courtside; create table courtside.throttle ()')
  await assert.rejects(migrate(url), /0001_accounts.sql failed; it was rolled back: relation "\w+" already exists$/)
  const { rows } = await client.query("select to_regclass('courtside.app_user') as table")
  assert.equal(rows[0].table, null)
  await client.end()
  await administer(`drop database ${name}`)
})
