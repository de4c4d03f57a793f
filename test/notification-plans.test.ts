import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import type pg from 'pg'
import { connectReads, type Sql } from '../src/db/sql.ts'
import { prepareStatement } from '../src/db/statement.ts'
import { readInbox, readInboxChanges } from '../src/notifications/inbox-changes.ts'
import * as notifications from '../src/notifications/notifications.ts'
import { harness } from './support/app.ts'

const h = harness()

const NOW = new Date('2026-11-28T10:00:00Z')

/**
 * Inserts 60 users and 60,000 notifications. The first user gets the oldest 2,000 notifications, and the other users
 * get all newer notifications.
 */
async function seed() {
  const { sql } = h.database
  await sql`
    insert into app_user (email, first_name, last_name, locale, terms_version, terms_accepted_at, created_at, updated_at)
    select 'club' || i || '@example.com', 'Marie', 'Durand', 'fr', '1', ${NOW}, ${NOW}, ${NOW}
    from generate_series(1, 60) as i`
  await sql`
    insert into notification (user_id, type, title, message, dedup_key, actor_id, locale, actor_name_length, read_at,
      created_at, updated_at)
    select case when i <= 2000 then 1 else 2 + i % 59 end, 'game_joined', 'Un joueur a rejoint la partie',
      'Marie a rejoint la partie (3/4).', 'f' || i, 1 + i % 60, 'fr', 5, case when i % 4 > 0 then ${NOW}::timestamptz end,
      ${NOW}, ${NOW}
    from generate_series(1, 60000) as i`
  await sql`vacuum analyze`
}

/**
 * Calls `work`, and returns the query plan of each statement that `work` sends. PostgreSQL plans each statement with
 * the actual values of its parameters, but does not run the statement.
 * @param query runs a statement; by default on a connection of the test
 */
async function explain(
  work: (sql: Sql) => Promise<unknown>,
  query: (statement: pg.QueryConfig) => Promise<pg.QueryResult> = statement => h.database.sql.pool.query(statement),
): Promise<string[]> {
  const plans: string[] = []
  const explaining = async (strings: TemplateStringsArray, ...values: unknown[]) => {
    const { text, values: bound } = prepareStatement(strings, values)
    const { rows } = await query({ text: `explain ${text}`, values: bound })
    plans.push(rows.map(row => row['QUERY PLAN']).join('\n'))
    return [{ id: null, user_id: 2, total: 0, unread_count: 0, count: 0, found: false }]
  }
  await work(explaining as unknown as Sql)
  assert.ok(plans.length > 0, 'no statement was explained')
  return plans
}

describe('each statement reads only the notifications that it needs', () => {
  before(seed)

  const statements: [string, (sql: Sql) => Promise<unknown>][] = [
    ['reading page 1 of a list', sql => notifications.list(sql, 1, { page: 1, perPage: 20 })],
    ['reading page 50 of a list', sql => notifications.list(sql, 1, { page: 50, perPage: 20 })],
    ['reading a list with before_id', sql => notifications.list(sql, 1, { page: 1, perPage: 20, beforeId: 1500 })],
    ['counting unread notifications', sql => notifications.countUnread(sql, 1)],
    ['marking one notification as read', sql => notifications.markRead(sql, 1, 7, NOW)],
    ['marking all notifications as read', sql => notifications.markAllRead(sql, 1, undefined, NOW)],
    ['marking some notifications as read', sql => notifications.markAllRead(sql, 1, [4, 8, 12], NOW)],
    ['deleting one notification', sql => notifications.remove(sql, 1, 7)],
    ['checking whether a notification belongs to another user', sql => notifications.belongsToOther(sql, 1, 7)],
    ['reading the inbox for a first sync', sql => readInbox(sql, 1, NOW)],
    ['deleting the notifications to a user and the name of the user', sql => notifications.eraseUser(sql, 1)],
  ]
  for (const [name, work] of statements) {
    test(`${name} does not scan the whole table`, async () => {
      for (const plan of await explain(work)) {
        assert.match(plan, /notification/)
        assert.doesNotMatch(plan, /Seq Scan on notification/)
      }
    })
  }

  test('reading the changes for the streams of all users looks up the new rows of each user', async () => {
    const reads = connectReads(h.database.url)
    const cursors = Array.from({ length: 60 }, (_, index) => ({ userId: index + 1, floor: 59_000, sentIds: [59_001] }))
    const [plan] = await explain(
      sql => readInboxChanges(sql, cursors),
      statement => reads.pipeline.query(statement),
    ).finally(() => reads.close())
    assert.match(plan!, /Index Cond: \(\(user_id = reader\.user_id\) AND \(id > reader\.floor\)\)/)
    assert.doesNotMatch(plan!, /Seq Scan on notification|(Hash|Merge) Join/)
  })

  for (const [name, work] of statements.slice(0, 3)) {
    test(`${name} does not scan newer notifications of other users, even if the caller has only old notifications`, async () => {
      for (const plan of await explain(work)) {
        assert.match(plan, /notification_pkey/)
        assert.doesNotMatch(plan, /notification_id\b/)
      }
    })
  }
})
