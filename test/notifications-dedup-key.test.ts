import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type pg from 'pg'
import { migrate } from '../src/db/migrate.ts'
import type { Database } from '../src/db/sql.ts'
import { type NewNotification, store } from '../src/notifications/store.ts'
import { harness } from './support/app.ts'
import { testDatabase } from './support/database.ts'
import { makeUser } from './support/factories.ts'

const h = harness()

// The statement with which the version before migration 0007 inserted notifications. The statement names the column
// `fact` and the unique constraint of this column.
const EARLIER_INSERT = `
    with stored as (
      insert into notification (user_id, type, title, message, data, fact, actor_id, locale, actor_name_length,
        created_at, updated_at)
      select user_id, type, title, message, data, fact, actor_id, new.locale, actor_name_length, $1, $2
      from unnest($3::bigint[], $4::text[], $5::text[],
          $6::text[], $7::json[],
          $8::text[], $9::bigint[], $10::text[],
          $11::smallint[]) with ordinality
        as new (user_id, type, title, message, data, fact, actor_id, locale, actor_name_length, position)
        join app_user on app_user.id = new.user_id
      order by position
      on conflict on constraint notification_fact_key do nothing
      returning user_id, id
    ), told as (
      select count(*) as count, pg_notify('notification', string_agg(user_id || ':' || id, ',' order by id))
      from (select user_id, id, (row_number() over () - 1) / 200 as part from stored) as numbered
      group by part
    )
    select coalesce(sum(count), 0)::bigint as count from told`

type Queryable = Pick<pg.Client, 'query'>

/** Stores notifications with `EARLIER_INSERT`. @returns the number of stored notifications */
async function storeAsEarlierVersion(client: Queryable, userId: number, keys: string[]): Promise<number> {
  const now = h.clock.now()
  const column = <T>(value: T) => keys.map(() => value)
  const values = [now, now, column(userId), column('game_full'), column('Partie complète'), keys, column('{}'), keys]
  const { rows } = await client.query({
    name: 'earlier insert',
    text: EARLIER_INSERT,
    values: [...values, column(null), column('fr'), column(0)],
  })
  return rows[0].count
}

async function storeAsThisVersion(sql: Database, userId: number, keys: string[]): Promise<number> {
  const notifications = keys.map(
    (dedupKey): NewNotification => ({
      userId,
      dedupKey,
      type: 'game_full',
      title: 'Partie complète',
      message: dedupKey,
      actorName: null,
      data: {},
      locale: 'fr',
      actorId: null,
    }),
  )
  return (await store(sql, notifications, h.clock.now())).length
}

async function readKeys(sql: Database, userId: number): Promise<[string, string | null, string][]> {
  const rows = await sql<{ dedup_key: string; fact: string | null; message: string }>`
    select dedup_key, fact, message from notification where user_id = ${userId} order by id`
  return rows.map(({ dedup_key, fact, message }) => [dedup_key, fact, message])
}

describe('a process of the version before migration 0007', () => {
  test('the insert from before migration 0007 fills `dedup_key`, and skips deduplication keys that the current version stored', async () => {
    const { sql } = h.database
    const { id } = await makeUser(h)
    assert.equal(await storeAsThisVersion(sql, id, ['a', 'b']), 2)
    assert.equal(await storeAsEarlierVersion(sql.pool as unknown as Queryable, id, ['b', 'c', 'c', 'd']), 2)
    assert.deepEqual(await readKeys(sql, id), [
      ['a', null, 'a'],
      ['b', null, 'b'],
      ['c', null, 'c'],
      ['d', null, 'd'],
    ])
  })

  test('the current version skips deduplication keys that the insert from before migration 0007 stored', async () => {
    const { sql } = h.database
    const { id } = await makeUser(h)
    assert.equal(await storeAsEarlierVersion(sql.pool as unknown as Queryable, id, ['a', 'b']), 2)
    assert.equal(await storeAsThisVersion(sql, id, ['b', 'c', 'a']), 1)
    assert.deepEqual(
      (await readKeys(sql, id)).map(([key]) => key),
      ['a', 'b', 'c'],
    )
  })

  test('an insert statement that was prepared before migration 0007 still works on its connection afterwards', async () => {
    const database = await testDatabase()
    const { sql } = database
    await revertMigration(sql)
    const [user] = await sql<{ id: number }>`
      insert into app_user (email, first_name, last_name, locale, terms_version, terms_accepted_at, created_at, updated_at)
      values ('marie@example.com', 'Marie', 'Durand', 'fr', '1', now(), now(), now())
      returning id`
    const client = await sql.pool.connect()
    try {
      assert.equal(await storeAsEarlierVersion(client, user!.id, ['a', 'b']), 2)
      assert.deepEqual(await migrate(database.url), ['0007_dedup_key.sql'])
      assert.equal(await storeAsEarlierVersion(client, user!.id, ['b', 'c']), 1)
      assert.equal(await storeAsThisVersion(sql, user!.id, ['a', 'b', 'c', 'd']), 1)
    } finally {
      client.release()
    }
    assert.deepEqual(
      (await readKeys(sql, user!.id)).map(([key]) => key),
      ['a', 'b', 'c', 'd'],
    )
    await database.drop()
  })
})

/** Reverts migration 0007. */
async function revertMigration(sql: Database): Promise<void> {
  await sql`drop trigger notification_fact on notification`
  await sql`drop function notification_fact_to_dedup_key`
  await sql`alter table notification drop column fact`
  await sql`alter table notification rename column dedup_key to fact`
  await sql`delete from migration where name = '0007_dedup_key.sql'`
}
