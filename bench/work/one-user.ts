import assert from 'node:assert/strict'
import { connect, type Sql } from '../../src/db/sql.ts'
import * as notifications from '../../src/notifications/notifications.ts'
import { type Bench, median } from '../measure.ts'
import { administer } from '../postgres.ts'
import { goalRow, type Part } from '../report.ts'
import { seedService } from '../seed.ts'

const OWNED = 10_000
const UNREAD = 1_000

/** Measures the times of statements for a user with 10 000 notifications, of which 1 000 are unread. */
export async function oneUser(bench: Bench): Promise<Part> {
  const url = await bench.postgres.createMigrated('one_user')
  await seedService(url, { users: 2_000, notifications: bench.smoke ? 20_000 : 200_000 })
  await administer(
    url,
    `insert into notification (user_id, type, title, message, data, read_at, created_at, updated_at, dedup_key, actor_id,
      locale)
    select 1, type, title, message, data, case when i % ${OWNED / UNREAD} > 0 then now() end, now(), now(), 'heavy-' || i, 2, 'fr'
    from generate_series(1, ${OWNED}) as i cross join (select * from notification where id = 1) as one`,
  )
  await administer(url, 'vacuum analyze notification')
  const sql = connect(url, { max: 1 })
  try {
    const rounds = bench.smoke ? 1 : 50
    const unread = await measureTime(sql, rounds, async tx => {
      assert.ok((await notifications.countUnread(tx, 1)) >= UNREAD)
      return undefined
    })
    const page = await measureTime(sql, rounds, async tx => {
      const { json, total } = await notifications.list(tx, 1, { page: 1, perPage: 20 })
      assert.ok(JSON.parse(json).length === 20 && total > OWNED)
      return undefined
    })
    const readAll = await measureTime(sql, bench.smoke ? 1 : 5, async tx => {
      await tx`update notification set read_at = null where user_id = 1`
      const startedAt = performance.now()
      assert.ok((await notifications.markAllRead(tx, 1, undefined, new Date())) > OWNED)
      return performance.now() - startedAt
    })
    const ms = (value: number) => `${value.toFixed(2)} ms`
    if (bench.smoke) return { rows: [] }
    return {
      rows: [
        goalRow('a user with 10 000 notifications: unread count', unread, { max: 1 }, ms),
        goalRow('a user with 10 000 notifications: page 1 with the totals', page, { max: 3 }, ms),
        goalRow('a user with 10 000 unread notifications: read-all', readAll, { max: 500 }, ms),
      ],
      notes: [
        [
          'The rows about a user with 10 000 notifications show median times of statements, measured at the driver.',
          'The time of read-all does not include the commit.',
        ].join(' '),
      ],
    }
  } finally {
    await sql.close()
  }
}

/**
 * Returns the median time of several runs in milliseconds. Each run is a transaction that is rolled back.
 * @param work runs the statements. If only a part of the run counts, `work` returns the time of this part in
 * milliseconds. If the whole run counts, `work` returns undefined.
 */
async function measureTime(sql: Sql, rounds: number, work: (tx: Sql) => Promise<number | undefined>): Promise<number> {
  const times: number[] = []
  for (let round = 0; round <= rounds; round += 1) {
    const rollback = new Error('rollback')
    await sql
      .begin(async tx => {
        const startedAt = performance.now()
        const ownTime = await work(tx)
        times.push(ownTime ?? performance.now() - startedAt)
        throw rollback
      })
      .catch(error => {
        if (error !== rollback) throw error
      })
  }
  return median(times.slice(1))
}
