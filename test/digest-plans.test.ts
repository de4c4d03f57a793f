import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createExpander } from '../src/reach/expand.ts'
import { sweep } from '../src/reach/waiting-mail.ts'
import { harness } from './support/app.ts'
import { HOUR_MS, PRODUCTION } from './support/digests.ts'
import { makeUser } from './support/factories.ts'
import { cloudEvent, newGameId, report } from './support/games.ts'

const h = harness(PRODUCTION)

// PostgreSQL keeps the plans that it makes while the tables are small. The tables then grow.
test('from the first notification on, no statement of the search for due mails scans a whole table', async () => {
  h.clock.set('2026-11-28T11:00:00.000Z')
  const { sql, hints, config, networks } = h.ctx
  const { preferenceDefaults, emailAfterMs, emailAfterUrgentMs } = config
  const hashReceiver = (userId: number) => networks.hashText(`receiver:${userId}`)
  const deps = { sql, hints, now: h.clock.now, preferenceDefaults, emailAfterMs, emailAfterUrgentMs, hashReceiver }
  const expand = createExpander({ ...deps, sendsMails: true })
  let mails = 0
  for (let round = 0; round < 10; round += 1) {
    const { id } = await makeUser(h)
    const startsAt = new Date(h.clock.now().getTime() + (round % 2 ? 40 : 4) * HOUR_MS).toISOString()
    const game = { game_id: newGameId(), creator_id: id, player_ids: [id], starts_at: startsAt }
    await report(h, cloudEvent('game_created', game))
    await report(h, cloudEvent('game_cancelled', game))
    const [row] = await sql<{ id: number; lease: string; payload: unknown }>`
      update outbox set lease = gen_random_uuid() where id = (select max(id) from outbox) returning id, lease, payload`
    assert.equal((await expand(row!)).outcome, 'delivered')
    h.clock.advance(16 * 60_000)
    assert.equal(await sweep(deps), 1)
    mails += (await sql`select id from outbox where user_id = ${id}`).length
  }
  assert.equal(mails, 10)
  // The transactions came one after the other, so they used one connection.
  assert.equal(sql.pool.totalCount, 1)
  await sql.begin(tx => tx`select pg_stat_force_next_flush()`)
  await sql.begin(tx => tx`select 1`)
  const read = await h.database.sql`
    select relname, seq_scan from pg_stat_user_tables
    where relname in ('outbox', 'waiting_mail', 'mail_state', 'notification_preference', 'push_subscription', 'notification', 'game')
      and seq_scan > 0`
  assert.deepEqual(read, [])
})
