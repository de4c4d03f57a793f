import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import type { Sql } from '../src/db/sql.ts'
import { prepareStatement } from '../src/db/statement.ts'
import { planReminders, replaceByProducerReminder } from '../src/games/plan-reminders.ts'
import type { Game } from '../src/games/projection.ts'
import { countOverdue, fireDue } from '../src/games/schedule.ts'
import { harness } from './support/app.ts'

const h = harness()

const NOW = new Date('2026-12-01T10:00:00Z')
const CLOCK = { now: NOW, timeZone: 'Europe/Paris' }

const GAME: Game = {
  id: 7,
  creatorId: 1,
  playerIds: [1],
  startsAt: '2026-12-20T18:00:00.000000Z',
  place: null,
  eventTime: '2026-11-20T18:00:00.000000Z',
  fullSince: null,
  cancelled: false,
}

/** Inserts a game for every minute of the next three weeks, and the same number of games that have started. */
async function seed() {
  const { sql } = h.database
  await sql`
    insert into game (id, creator_id, player_ids, starts_at, fact_time, updated_at)
    select i, 1, '{1}', ${NOW}::timestamptz + (i - 30000) * interval '1 minute', ${NOW}, ${NOW}
    from generate_series(1, 60000) as i`
  await sql`
    insert into game_schedule (game_id, starts_at, type, due_at)
    select id, starts_at, type, starts_at - early::interval
    from game, (values ('game_reminder', '1 day'), ('game_reminder', '2 hours'), ('game_started', '0')) as due (type, early)`
  await sql`vacuum analyze`
}

/** Returns the query plans of the statements that `work` runs: a custom plan and a generic plan for each statement. */
async function explain(work: (sql: Sql) => Promise<unknown>): Promise<string[]> {
  const plans: string[] = []
  const client = await h.database.sql.pool.connect()
  const explaining = async (strings: TemplateStringsArray, ...values: unknown[]) => {
    const { text, values: bound } = prepareStatement(strings, values)
    for (const mode of ['force_custom_plan', 'force_generic_plan']) {
      await client.query(`set plan_cache_mode = ${mode}`)
      const { rows } = await client.query(`explain ${text}`, bound)
      plans.push(rows.map(row => row['QUERY PLAN']).join('\n'))
    }
    // `fireDue` sends its second statement only if its first statement returns a game. The real statements do not run
    // here, so `explaining` returns an invented game for the first statement.
    if (/^\s*select\s+id/.test(text)) return [{ id: 7, creator_id: 1, player_ids: [1], starts_at: GAME.startsAt }]
    return /count/.test(text) ? [{ due: 0, oldest: null }] : []
  }
  explaining.begin = (inner: (sql: Sql) => Promise<unknown>) => inner(explaining as unknown as Sql)
  await work(explaining as unknown as Sql)
  await client.query('reset plan_cache_mode')
  client.release()
  return plans
}

describe('each statement reads only the rows of the schedule that it needs', () => {
  before(seed)

  const moved = { ...GAME, startsAt: '2026-12-21T18:00:00.000000Z' }
  const statements: [string, number, (sql: Sql) => Promise<unknown>][] = [
    ['firing due reminders', 2, sql => fireDue(sql, CLOCK, new Set())],
    [
      'planning reminders',
      1,
      sql => planReminders(sql, new Map([[7, GAME]]), [moved], { ...CLOCK, reminderOffsets: [{ days: 1 }] }),
    ],
    ['replacing a planned reminder with a producer’s reminder', 1, sql => replaceByProducerReminder(sql, [GAME], NOW)],
  ]
  for (const [name, count, work] of statements) {
    test(`${name} does not scan a whole table`, async () => {
      const plans = await explain(work)
      assert.equal(plans.length, count * 2)
      for (const plan of plans) assert.doesNotMatch(plan, /Seq Scan on game/, plan)
    })
  }

  test('firing due times reads a batch in the order of the index, without a sort, even if the backlog is large', async () => {
    const plans = (await explain(sql => fireDue(sql, CLOCK, new Set()))).slice(0, 2)
    assert.equal(plans.length, 2)
    for (const plan of plans) {
      assert.match(plan, /Index Scan using game_schedule_due/)
      assert.doesNotMatch(plan, /Sort|Hash/)
    }
  })

  test('counting overdue rows reads only the index if few rows are overdue', async () => {
    const early = new Date(NOW.getTime() - 29_990 * 60_000)
    const [plan] = await explain(sql => countOverdue(sql, early))
    assert.match(plan!, /Index (Only )?Scan using game_schedule_due|Bitmap Index Scan on game_schedule_due/)
  })
})
