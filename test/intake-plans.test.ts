import assert from 'node:assert/strict'
import { test } from 'node:test'
import { harness, INTAKE_KEY } from './support/app.ts'
import { makeUser } from './support/factories.ts'
import { cloudEvent, newGameId } from './support/games.ts'

const h = harness()

// PostgreSQL makes a generic plan for the current content of the tables and keeps this plan. In a new installation the
// tables are empty, and a scan of an empty table is cheap. The tables then grow, but the plans stay the same. So the
// plans must use the indexes from the first event on.
test('from the first event on, the intake uses only generic plans, and no plan scans a whole table', async () => {
  const [creator, actor] = [await makeUser(h), await makeUser(h)]
  const event = () =>
    cloudEvent('game_joined', {
      game_id: newGameId(),
      creator_id: creator.id,
      player_ids: [creator.id, actor.id],
      actor_id: actor.id,
    })
  for (let count = 0; count < 10; count += 1) {
    const { body } = await h.call('POST', '/internal/v1/events', { token: INTAKE_KEY, body: event() })
    assert.equal(body.notifications, 1)
  }
  // The requests came one after the other, so one connection served all of them. The view `pg_prepared_statements` of
  // this connection therefore contains all plans.
  assert.equal(h.ctx.intakeSql.pool.totalCount, 1)
  const [plans] = await h.ctx.intakeSql.begin(
    sql => sql<{ generic: number; custom: number }>`
      select sum(generic_plans) as generic, sum(custom_plans) as custom, pg_stat_force_next_flush()
      from pg_prepared_statements`,
  )
  assert.ok(Number(plans!.generic) >= 70)
  assert.equal(Number(plans!.custom), 0)
  const read = await h.ctx.intakeSql`
    select relname, seq_scan from pg_stat_user_tables
    where relname in ('event', 'game', 'game_schedule', 'app_user', 'notification') and seq_scan > 0`
  assert.deepEqual(read, [])
})
