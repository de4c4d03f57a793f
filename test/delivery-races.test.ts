import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import * as outbox from '../src/outbox/outbox.ts'
import { eraseUser } from '../src/personal-data.ts'
import { defer, type Seen } from '../src/reach/defer.ts'
import { readAll, update } from '../src/reach/preferences.ts'
import { harness } from './support/app.ts'
import { deliveries, HOUR_MS } from './support/digests.ts'
import { makeUser } from './support/factories.ts'
import { cloudEvent, newGameId, report } from './support/games.ts'
import { waitUntil } from './support/wait-until.ts'

const h = harness()
const ROUNDS = 200

/** Inserts a push that a worker has claimed. */
async function claimPush(userId: number, gameId: number) {
  const now = h.clock.now()
  await h.database.sql`delete from outbox`
  await h.database.sql`
    insert into outbox (channel, class, created_at, due, user_id, game_id, payload)
    values ('push', 2, ${now}, ${now}, ${userId}, ${gameId}, '{}')`
  const lastNetworks = new Map([[2, Buffer.alloc(0)]])
  const [row] = await outbox.claim(h.database.sql, { channel: 'push', limit: 1, lastNetworks, lapsedBefore: undefined })
  return row!
}

async function look(userId: number, gameId: number): Promise<Seen> {
  const [preferences, [row]] = await Promise.all([
    readAll(h.database.sql, [userId], h.ctx.config.preferenceDefaults),
    h.database.sql<{ starts_at: Date | null; cancelled: boolean }>`
      select starts_at, cancelled from game where id = ${gameId}`,
  ])
  const game = row && { startsAt: row.starts_at ?? undefined, cancelled: row.cancelled }
  return { userId, version: preferences.get(userId)!.version, gameId, game }
}

const later = () => new Date(h.clock.now().getTime() + HOUR_MS)

async function readRow(id: number) {
  const [row] = await h.database.sql<{ ready: boolean; lease: string | null; attempts: number; due: Date }>`
    select ready, lease, attempts, due from outbox where id = ${id}`
  return row!
}

suite('a delivery that a worker defers', () => {
  test('waits without a lease and without the attempt, if nothing has changed', async () => {
    const { id: userId } = await makeUser(h)
    const row = await claimPush(userId, newGameId())
    const until = later()
    assert.equal(await defer(h.database.sql, row, until, await look(userId, row.game_id!)), true)
    assert.deepEqual(await readRow(row.id), { ready: false, lease: null, attempts: 0, due: until })
  })

  test('is left to the worker that has taken it over', async () => {
    const { id: userId } = await makeUser(h)
    const row = await claimPush(userId, newGameId())
    await h.database.sql`update outbox set lease = gen_random_uuid() where id = ${row.id}`
    assert.equal(await defer(h.database.sql, row, later(), await look(userId, row.game_id!)), true)
    assert.equal((await readRow(row.id)).ready, true)
  })

  test(`never sleeps on after a change of the quiet hours, in ${ROUNDS} races`, async () => {
    const { id: userId } = await makeUser(h)
    const outcomes = { deferred: 0, changed: 0 }
    for (let round = 0; round < ROUNDS; round += 1) {
      const row = await claimPush(userId, newGameId())
      const seen = await look(userId, row.game_id!)
      const from = `${String(round % 24).padStart(2, '0')}:${round % 2 ? '15' : '45'}`
      const settings = { defaults: h.ctx.config.preferenceDefaults, now: h.clock.now() }
      const [isDeferred] = await Promise.all([
        defer(h.database.sql, row, later(), seen),
        update(h.database.sql, userId, { quietHours: { enabled: true, from, to: '12:34' } }, settings),
      ])
      outcomes[isDeferred ? 'deferred' : 'changed'] += 1
      const { ready } = await readRow(row.id)
      assert.equal(ready, true, `round ${round}`)
    }
    assert.equal(outcomes.deferred + outcomes.changed, ROUNDS)
  })

  test(`never sleeps on after the first change of preferences, in ${ROUNDS / 2} races`, async () => {
    for (let round = 0; round < ROUNDS / 2; round += 1) {
      const { id: userId } = await makeUser(h)
      const row = await claimPush(userId, newGameId())
      const seen = await look(userId, row.game_id!)
      const settings = { defaults: h.ctx.config.preferenceDefaults, now: h.clock.now() }
      await Promise.all([
        update(h.database.sql, userId, { timeZone: 'Asia/Tokyo' }, settings),
        defer(h.database.sql, row, later(), seen),
      ])
      assert.equal((await readRow(row.id)).ready, true, `round ${round}`)
    }
  })

  test(`never sleeps on after its game was moved or cancelled, in ${ROUNDS} races`, async () => {
    const { id: userId } = await makeUser(h)
    const gameId = newGameId()
    const players = { game_id: gameId, creator_id: userId, player_ids: [userId] }
    await report(h, cloudEvent('game_created', players))
    for (let round = 0; round < ROUNDS; round += 1) {
      const row = await claimPush(userId, gameId)
      const seen = await look(userId, gameId)
      const startsAt = new Date(Date.parse('2027-02-01T10:00:00Z') + round * 60_000).toISOString()
      const isLast = round === ROUNDS - 1
      const event = cloudEvent(isLast ? 'game_cancelled' : 'game_updated', { ...players, starts_at: startsAt })
      await Promise.all([
        round % 2 ? report(h, event) : Promise.resolve().then(() => report(h, event)),
        defer(h.database.sql, row, later(), seen),
      ])
      assert.equal((await readRow(row.id)).ready, true, `round ${round}`)
    }
  })
})

test('if a game moves, its waiting pushes and mails are looked at again, and those of other games are not', async () => {
  const { id: userId } = await makeUser(h)
  const [moved, other] = [newGameId(), newGameId()]
  for (const game_id of [moved, other]) {
    await report(h, cloudEvent('game_created', { game_id, creator_id: userId, player_ids: [userId] }))
    const until = later()
    await h.database.sql`
      insert into outbox (channel, class, created_at, due, ready, user_id, game_id, payload)
      values ('push', 2, ${h.clock.now()}, ${until}, false, ${userId}, ${game_id}, '{}')`
    await h.database.sql`
      insert into waiting_mail (user_id, notification_id, game_id, urgent, created_at, look_at)
      values (${userId}, ${game_id}, ${game_id}, false, ${h.clock.now()}, ${until})`
  }
  const starts_at = '2027-03-01T10:00:00Z'
  await report(h, cloudEvent('game_updated', { game_id: moved, creator_id: userId, player_ids: [userId], starts_at }))
  const pushes = await h.database.sql`select game_id from outbox where ready and user_id = ${userId}`
  assert.deepEqual(pushes, [{ game_id: moved }])
  const due = await h.database.sql`
    select game_id from waiting_mail where look_at <= ${h.clock.now()} and user_id = ${userId}`
  assert.deepEqual(due, [{ game_id: moved }])
  assert.equal((await deliveries(h).readPushes(userId)).length, 2)
})

suite('operations that lock the waiting deliveries of a user never deadlock', () => {
  const change = { quietHours: { enabled: true, from: '01:02' } }
  const options = () => ({ defaults: h.ctx.config.preferenceDefaults, now: h.clock.now() })
  const others: Record<string, (userId: number) => Promise<unknown>> = {
    'a change of the quiet hours': userId => update(h.database.sql, userId, change, options()),
    'the deletion of the account': userId => eraseUser(h.database.sql, userId),
  }
  for (const table of ['outbox', 'waiting_mail'] as const) {
    for (const [title, operation] of Object.entries(others)) {
      test(`${title} beside an event that moves the game, in ${table}`, async () => {
        const { sql } = h.database
        const { id: userId } = await makeUser(h)
        const { id: creator_id } = await makeUser(h)
        const gameId = newGameId()
        // The user is no player any more, so the deletion of the account does not lock the game.
        const data = { game_id: gameId, creator_id, player_ids: [creator_id] }
        await report(h, cloudEvent('game_created', data))
        const until = later()
        for (let id = 1; id <= 9; id += 1) {
          if (table === 'outbox') {
            await sql`
              insert into outbox (channel, class, created_at, due, ready, user_id, game_id, payload)
              values ('push', ${id}, ${until}, ${until}, false, ${userId}, ${gameId}, '{}')`
          } else {
            await sql`
              insert into waiting_mail (user_id, notification_id, game_id, urgent, created_at, look_at)
              values (${userId}, ${id}, ${gameId}, false, ${until}, ${until})`
          }
        }
        const starts_at = '2027-04-01T10:00:00Z'
        let done: Promise<unknown> = Promise.resolve()
        await sql.begin(async tx => {
          // Both operations lock rows until they reach this one in the middle. If their orders differed, each would
          // then wait for rows of the other.
          if (table === 'outbox') await tx`select from outbox where user_id = ${userId} and class = 5 for update`
          else await tx`select from waiting_mail where user_id = ${userId} and notification_id = 5 for update`
          done = Promise.all([operation(userId), report(h, cloudEvent('game_updated', { ...data, starts_at }))])
          await waitUntil(async () => {
            const [row] = await sql<{ count: number }>`
              select count(*) from pg_stat_activity
              where datname = current_database() and wait_event_type = 'Lock'`
            return row!.count === 2
          })
        })
        await done
      })
    }
  }
})
