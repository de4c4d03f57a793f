// Migrates a database with a million accounts to the collation "C" while a writer adds rows to the migrated tables. No
// write may wait longer than a second.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { migrate } from '../../src/db/migrate.ts'
import { localeDatabase, prepareBefore } from '../support/locale-database.ts'

const ACCOUNTS = 1_000_000
const FIRST = '0015_account_email_index.sql'

test('while the migrations to the collation "C" run on a million accounts, no write waits longer than a second', {
  timeout: 900_000,
}, async t => {
  const { url, sql } = await localeDatabase(t)
  await prepareBefore(sql, FIRST)
  // The connections of the service give up after 30 s.
  const client = new pg.Client({ connectionString: url, options: '-c search_path=courtside' })
  await client.connect()
  await client.query(`
    insert into app_user (email, first_name, last_name, locale, terms_version, terms_accepted_at, created_at, updated_at)
      select md5(n::text) || '@example.com', 'A', 'B', 'fr', '1', now(), now(), now()
      from generate_series(1, ${ACCOUNTS}) as n;
    insert into sign_in_address (email, sent_at, mailed) select email, now(), true from app_user;
    insert into sign_in_code (id, email, purpose, mac, sent_at, expires_at)
      select gen_random_uuid(), email, 'sign_in', '', now(), now() from app_user;
    insert into notification (user_id, type, title, message, dedup_key, locale, created_at, updated_at)
      select id, 'game_full', 'T', 'M', md5(id::text), 'fr', now(), now() from app_user`)
  await client.end()
  let isOver = false
  let longestMs = 0
  let writes = 0
  async function write(): Promise<void> {
    while (!isOver) {
      const startedAt = performance.now()
      await sql`
        with address as (
          insert into sign_in_address (email, sent_at, mailed) values (${randomUUID()}, now(), true) returning email
        ), account as (
          insert into app_user
            (email, first_name, last_name, locale, terms_version, terms_accepted_at, created_at, updated_at)
          select email, 'A', 'B', 'fr', '1', now(), now(), now() from address returning id
        )
        insert into notification (user_id, type, title, message, dedup_key, locale, created_at, updated_at)
        select id, 'game_full', 'T', 'M', id::text || '/new', 'fr', now(), now() from account`
      longestMs = Math.max(longestMs, performance.now() - startedAt)
      writes += 1
      await delay(10)
    }
  }
  const writing = write()
  await delay(5_000)
  const before = Math.round(longestMs)
  longestMs = 0
  const startedAt = performance.now()
  const applied = await migrate(url)
  const seconds = Math.round((performance.now() - startedAt) / 1000)
  isOver = true
  await writing
  t.diagnostic(`${applied.length} migrations in ${seconds} s beside ${writes} writes`)
  t.diagnostic(`the longest write took ${Math.round(longestMs)} ms, and ${before} ms before the migrations`)
  assert.ok(longestMs < 1_000, `${longestMs}`)
})
