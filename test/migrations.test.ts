import assert from 'node:assert/strict'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, beforeEach, suite, test } from 'node:test'
import type { migrate } from '../src/db/migrate.ts'
import { splitStatements } from '../src/db/split-statements.ts'
import { settingsFor } from './support/app.ts'
import { administer, type TestDatabase, testDatabase, waitsForLock } from './support/database.ts'
import { collectLines, copyProgram, run } from './support/service.ts'
import { waitUntil } from './support/wait-until.ts'

const MIGRATIONS = new URL('../migrations/', import.meta.url)
const MARK = '-- Outside a transaction.\n'
const NEXT = '9999_next.sql'
const BUILD = `${MARK}drop index concurrently if exists next;
  create unique index concurrently next on app_user (first_name);`

test('the text of a migration is split only at semicolons that end a statement', () => {
  const first = `-- It's one; statement.\ncreate table "a;b" (c text default 'd;''e')`
  const second = 'create function f() returns trigger language plpgsql as $$ begin return new; end $$'
  const text = `${first};\n\n;/* A; comment. */;\n${second};\n-- The end; of the file.\n`
  assert.deepEqual(splitStatements(text), [first, second])
})

test('a migration outside a transaction drops one index and builds it again, and no other migration builds concurrently', async () => {
  for (const name of (await readdir(MIGRATIONS)).sort()) {
    const text = await readFile(new URL(name, MIGRATIONS), 'utf8')
    const statements = splitStatements(text).map(statement => statement.replace(/^--.*\n/gm, '').trim())
    if (!text.startsWith(MARK)) {
      assert.doesNotMatch(statements.join(';'), /concurrently/, name)
      continue
    }
    assert.equal(statements.length, 2, name)
    const [, index] = /^create (?:unique )?index concurrently (\w+) on /.exec(statements[1]!) ?? []
    assert.equal(statements[0], `drop index concurrently if exists ${index}`, name)
  }
})

suite('a migration outside a transaction', { timeout: 60_000 }, () => {
  let folder: string
  let database: TestDatabase
  let next: { migrate: typeof migrate }

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'courtside-next-'))
    await copyProgram(folder)
    await writeFile(join(folder, 'migrations', NEXT), BUILD)
    // The imported module is a copy of `src/db/migrate.ts` in a folder that contains the migration `NEXT`.
    next = (await import(join(folder, 'src/db/migrate.ts'))) as { migrate: typeof migrate }
  })
  after(() => rm(folder, { recursive: true, force: true }))
  beforeEach(async () => {
    database = await testDatabase()
  })
  afterEach(() => database.drop())

  const addUser = (name: string) => database.sql`
    insert into app_user (email, first_name, last_name, locale, terms_version, terms_accepted_at, created_at, updated_at)
    values (${`${name}@example.com`}, 'A', 'B', 'fr', '1', now(), now(), now())`
  const findIndex = async () => {
    const [index] = await database.sql<{ valid: boolean }>`
      select indisvalid as valid from pg_index where indexrelid = to_regclass('next')`
    return index
  }

  test('five processes build the index once, and other processes write during the build', async () => {
    let applied: Promise<string[][]> | undefined
    await database.sql.begin(async tx => {
      // The build waits until this transaction ends. A process that waits for the build must not have a snapshot.
      await tx`update app_user set first_name = first_name`
      applied = Promise.all(Array.from({ length: 5 }, () => next.migrate(database.url)))
      await waitUntil(() => waitsForLock(database.sql, '^create unique index'))
      await addUser('meanwhile')
    })
    assert.deepEqual((await applied!).flat(), [NEXT])
    assert.deepEqual(await findIndex(), { valid: true })
  })

  test('a failed build leaves an invalid index, and the next start builds the index again', async () => {
    await addUser('one')
    await addUser('two')
    await assert.rejects(
      next.migrate(database.url),
      /^Error: Migration 9999_next\.sql failed; the next start repeats it/,
    )
    assert.deepEqual(await findIndex(), { valid: false })
    await database.sql`delete from app_user where email = 'two@example.com'`
    assert.deepEqual(await next.migrate(database.url), [NEXT])
    assert.deepEqual(await findIndex(), { valid: true })
    assert.deepEqual(await next.migrate(database.url), [])
  })
})

test('a process that waits for a primary starts, although another process has migrated the database meanwhile', async t => {
  const database = await testDatabase()
  const name = new URL(database.url).pathname.slice(1)
  const newest = (await readdir(MIGRATIONS)).sort().at(-1)!
  await database.sql`delete from migration where name = ${newest}`
  // The process reads the applied migrations, and fails to apply the newest one.
  await administer(`alter database ${name} set default_transaction_read_only = on`)
  const service = run(['serve'], { PORT: '0', ...settingsFor(database.url) })
  t.after(async () => {
    service.kill('SIGKILL')
    await database.drop()
  })
  const lines = collectLines(service)
  const hasPrinted = (text: string) => lines.some(line => line.includes(text))
  await waitUntil(() => hasPrinted('the database is not ready yet'))
  // The migration of the other process changes the result columns of the prepared statement.
  await database.sql`alter table migration alter column name type varchar collate "C"`
  await database.sql`insert into migration (name) values (${newest})`
  await administer(`alter database ${name} reset default_transaction_read_only`)
  await waitUntil(() => hasPrinted('"msg":"listening"') || service.exitCode !== null)
  assert.equal(service.exitCode, null, lines.join('\n'))
})
