import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import type { Sql } from '../src/db/sql.ts'
import { prepareStatement } from '../src/db/statement.ts'
import { readInboxChanges } from '../src/notifications/inbox-changes.ts'
import * as notifications from '../src/notifications/notifications.ts'
import { harness } from './support/app.ts'

const h = harness()

const NOW = new Date('2026-11-28T10:00:00Z')

// A club of sixty; the first was told 2 000 things, then stopped playing, and all that follows is the others'.
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

/** The plans of the statements that `work` runs, which are planned as if for this user alone. */
async function plansOf(work: (sql: Sql) => Promise<unknown>): Promise<string> {
  const plans: string[] = []
  const explaining = async (strings: TemplateStringsArray, ...values: unknown[]) => {
    const { text, values: bound } = prepareStatement(strings, values)
    const { rows } = await h.database.sql.pool.query(`explain ${text}`, bound)
    plans.push(...rows.map(row => row['QUERY PLAN']))
    return [{ id: null, total: 0, unread_count: 0, count: 0, found: false }]
  }
  await work(explaining as unknown as Sql)
  return plans.join('\n')
}

describe('no statement reads more of the table than is asked for', () => {
  before(seed)

  const statements: [string, (sql: Sql) => Promise<unknown>][] = [
    ['page 1', sql => notifications.list(sql, 1, { page: 1, perPage: 20 })],
    ['page 50', sql => notifications.list(sql, 1, { page: 50, perPage: 20 })],
    ['before an id', sql => notifications.list(sql, 1, { page: 1, perPage: 20, beforeId: 1500 })],
    ['unread count', sql => notifications.countUnread(sql, 1)],
    ['read', sql => notifications.markRead(sql, 1, 7, NOW)],
    ['read-all', sql => notifications.markAllRead(sql, 1, undefined, NOW)],
    ['read-all of some', sql => notifications.markAllRead(sql, 1, [4, 8, 12], NOW)],
    ['delete', sql => notifications.remove(sql, 1, 7)],
    ['whose is it', sql => notifications.belongsToOther(sql, 1, 7)],
    ['news for two streams', sql => readInboxChanges(sql, [1, 2], new Map([[1, new Set([7])]]))],
    ['deleting who acted', sql => notifications.anonymizeActor(sql, 1)],
  ]
  for (const [name, work] of statements) {
    test(name, async () => {
      assert.doesNotMatch(await plansOf(work), /Seq Scan on notification/)
    })
  }

  for (const [name, work] of statements.slice(0, 3)) {
    test(`${name} of somebody who stopped playing doesn't walk through everybody's newer ones`, async () => {
      assert.doesNotMatch(await plansOf(work), /notification_id\b/)
    })
  }
})
