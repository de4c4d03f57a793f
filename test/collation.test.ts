import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { migrate } from '../src/db/migrate.ts'
import type { Database } from '../src/db/sql.ts'
import { settingsFor } from './support/app.ts'
import { administer, testDatabase } from './support/database.ts'
import { applyMigrations, localeDatabase, prepareBefore } from './support/locale-database.ts'
import { startService } from './support/service.ts'

const FOLDER = new URL('../migrations/', import.meta.url)
/** The first of the migrations that give the keys the collation "C". */
const FIRST = '0015_account_email_index.sql'

/** Returns the files in which PostgreSQL stores the tables and indexes of a list, by their names. */
async function readFiles(sql: Database, relations: string[]): Promise<Map<string, number>> {
  const rows = await sql<{ name: string; file: number }>`
    select name, pg_relation_filenode(name::regclass)::bigint as file from unnest(${relations}::text[]) as name`
  return new Map(rows.map(({ name, file }) => [name, file]))
}

test('every text in a key sorts by bytes, for every locale of the database', async () => {
  const database = await testDatabase()
  const dependent = await database.sql`
    select indexrelid::regclass::text as name from pg_index, unnest(indcollation) as key (collation_id)
    join pg_collation on pg_collation.oid = key.collation_id
    where indrelid in (select oid from pg_class where relnamespace = current_schema()::regnamespace)
      and collname <> 'C'`
  await database.drop()
  assert.deepEqual(dependent, [])
})

test('the migrations to the collation "C" rewrite no table, and keep the indexes that they built before', async t => {
  const { url, sql } = await localeDatabase(t)
  const names = await prepareBefore(sql, FIRST)
  await sql.pool.query(`
    insert into app_user (email, first_name, last_name, locale, terms_version, terms_accepted_at, created_at, updated_at)
      select n || '@example.com', 'A', 'B', 'fr', '1', now(), now(), now() from generate_series(1, 1000) as n;
    insert into sign_in_address (email, sent_at, mailed) select email, now(), true from app_user;
    insert into sign_in_code (id, email, purpose, mac, sent_at, expires_at)
      select gen_random_uuid(), email, 'sign_in', '', now(), now() from app_user;
    insert into game (id, player_ids, updated_at) select n, '{}', now() from generate_series(1, 1000) as n;
    insert into game_notice (game_id, notice, created_at) select id, 'started', now() from game;
    insert into game_schedule (game_id, starts_at, type, due_at) select id, now(), 'game_started', now() from game;
    insert into notification (user_id, type, title, message, dedup_key, locale, created_at, updated_at)
      select id, 'game_full', 'T', 'M', 'k' || id, 'fr', now(), now() from app_user`)
  const tables = ['app_user', 'sign_in_address', 'sign_in_code', 'game_notice', 'game_schedule', 'notification']
  const before = await readFiles(sql, tables)
  const built = new Map<string, number>()
  for (const name of names) {
    await applyMigrations(sql, [name])
    const index = /create (?:unique )?index concurrently (\w+)/.exec(await readFile(new URL(name, FOLDER), 'utf8'))?.[1]
    if (index) for (const [, file] of await readFiles(sql, [index])) built.set(index, file)
  }
  assert.deepEqual(await readFiles(sql, tables), before)
  const kept = await sql<{ file: number }>`
    select pg_relation_filenode(indexrelid)::bigint as file from pg_index
    where indrelid = any(${tables}::regclass[]) and indisvalid and 950 = any(indcollation)`
  assert.deepEqual(kept.map(({ file }) => file).sort(), [...built.values()].sort())
  assert.equal(built.size, 7)
  const invalid = await sql`select conname from pg_constraint where not convalidated`
  assert.deepEqual(invalid, [])
  assert.deepEqual(await migrate(url), [])
})

test('if the locale of the database sorts in another way than before, the log and /readyz say so', async t => {
  const { url } = await localeDatabase(t)
  await migrate(url)
  await administer(`update pg_database set datcollversion = '1' where datname = '${new URL(url).pathname.slice(1)}'`)
  const service = await startService(settingsFor(url))
  t.after(async () => void (await service.stop('SIGKILL')))
  const answer = await (await fetch(`${service.address}/readyz`)).json()
  assert.match((answer as { warning: string }).warning, /sort order .* has changed/)
  assert.ok(service.lines.some(line => line.includes('refresh collation version')))
})
