import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { connect } from '../src/db/sql.ts'
import { fireDue } from '../src/games/schedule.ts'
import { harness } from './support/app.ts'
import { event, four, happens, newGame, person, toldTo, typesTold } from './support/games.ts'

const h = harness()

// What the tests before have planned is no business of the next.
beforeEach(() => h.database.sql`delete from game_schedule`)

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** A start some time after the clock's now, in whole seconds. */
function startIn(ms: number): string {
  return new Date(Math.floor((h.clock.now().getTime() + ms) / 1000) * 1000).toISOString()
}

function fire(sql = h.database.sql) {
  return fireDue(sql, { now: h.clock.now(), timeZone: 'Europe/Paris' })
}

/** Goes forward in steps, and looks at each, as a worker does. @returns how many were told */
async function pass(ms: number, step = 30 * 60_000): Promise<number> {
  let told = 0
  for (let passed = 0; passed < ms; passed += step) {
    h.clock.advance(Math.min(step, ms - passed))
    told += (await fire()).filter(({ outcome }) => outcome === 'told').length
  }
  return told
}

/** An event of the clock's now. */
function now(type: string, data: Record<string, unknown>) {
  return event(type, data, { time: h.clock.now().toISOString() })
}

async function create(startsAt: string, players: number[], gameId = newGame()): Promise<number> {
  await happens(
    h,
    now('game_created', { game_id: gameId, creator_id: players[0], player_ids: players, starts_at: startsAt }),
  )
  return gameId
}

function change(gameId: number, startsAt: string, players: number[], type = 'game_updated', more = {}) {
  h.clock.advance(1)
  return happens(
    h,
    now(type, { game_id: gameId, creator_id: players[0], player_ids: players, starts_at: startsAt, ...more }),
  )
}

async function planOf(gameId: number): Promise<string[]> {
  const rows = await h.database.sql<{ type: string }>`
    select type from game_schedule where game_id = ${gameId} order by due_at`
  return rows.map(row => row.type)
}

describe('a game', () => {
  test('is reminded of a day and two hours before, and its start is told', async () => {
    const players = [await person(h), await person(h, 'Bob', 'en')]
    const startsAt = startIn(3 * DAY_MS)
    await create(startsAt, players)
    assert.equal(await pass(3 * DAY_MS + HOUR_MS), 3)
    for (const player of players) {
      const told = await toldTo(h, player)
      assert.deepEqual(
        told.map(row => row.type),
        ['game_reminder', 'game_reminder', 'game_started'],
      )
      assert.deepEqual(Object.keys(told[0]!.data), ['game_id', 'starts_at'])
    }
    const [first, second, started] = await toldTo(h, players[0]!)
    assert.match(first!.message, /^Votre partie commence demain à \d+\sh\s\d\d\.$/)
    assert.match(second!.message, /^Votre partie commence aujourd'hui à \d+\sh\s\d\d\.$/)
    assert.match(started!.message, /^Votre partie de \d+\sh\s\d\d a commencé\./)
  })

  test('60 days ahead', async () => {
    const [player] = [await person(h)]
    await create(startIn(60 * DAY_MS), [player])
    assert.equal(await pass(59 * DAY_MS, 6 * HOUR_MS), 1)
    assert.equal(await pass(DAY_MS), 2)
  })

  test('heard of late: what has passed is skipped', async () => {
    const player = await person(h)
    await create(startIn(HOUR_MS), [player])
    assert.equal(await pass(2 * HOUR_MS), 1)
    assert.deepEqual(await typesTold(h, player), [['game_started']])
    const over = await create(startIn(-HOUR_MS), [player])
    assert.deepEqual(await planOf(over), [])
  })

  test('made known by a score has no schedule', async () => {
    const [one, two] = [await person(h), await person(h)]
    const gameId = newGame()
    await happens(
      h,
      now('score_submitted', {
        game_id: gameId,
        creator_id: one,
        player_ids: [one, two],
        actor_id: one,
        starts_at: startIn(DAY_MS * 2),
        score: { sets: '6-4' },
      }),
    )
    assert.deepEqual(await planOf(gameId), [])
  })
})

describe('changes', () => {
  test('five re-timings and back to the first time: exactly one of each', async () => {
    const players = [await person(h)]
    const first = startIn(4 * DAY_MS)
    const gameId = await create(first, players)
    for (const days of [5, 6, 7, 3, 8]) await change(gameId, startIn(days * DAY_MS), players)
    await change(gameId, first, players)
    assert.equal((await planOf(gameId)).length, 3)
    assert.equal(await pass(9 * DAY_MS), 3)
    assert.deepEqual(await typesTold(h, ...players), [['game_reminder', 'game_reminder', 'game_started']])
  })

  test('moved and back after a reminder: it isn’t told again', async () => {
    const players = [await person(h)]
    const first = startIn(DAY_MS + HOUR_MS)
    const gameId = await create(first, players)
    assert.equal(await pass(2 * HOUR_MS), 1)
    await change(gameId, startIn(5 * DAY_MS), players)
    await change(gameId, first, players)
    assert.equal(await pass(2 * DAY_MS), 2)
  })

  test('a player who left is not reminded, one who joined is', async () => {
    const [anna, bob, chloe] = await four(h)
    const startsAt = startIn(3 * HOUR_MS)
    const gameId = await create(startsAt, [anna, bob])
    await change(gameId, startsAt, [anna], 'game_left', { actor_id: bob })
    await change(gameId, startsAt, [anna, chloe], 'game_joined', { actor_id: chloe })
    await pass(2 * HOUR_MS)
    const reminded = (await typesTold(h, anna, bob, chloe)).map(types => types.includes('game_reminder'))
    assert.deepEqual(reminded, [true, false, true])
  })

  test('cancelled: nothing is told any more, nor planned by a later fact', async () => {
    const players = [await person(h)]
    const startsAt = startIn(3 * HOUR_MS)
    const gameId = await create(startsAt, players)
    await change(gameId, startsAt, players, 'game_cancelled')
    assert.deepEqual(await planOf(gameId), [])
    await change(gameId, startIn(5 * HOUR_MS), players)
    assert.deepEqual(await planOf(gameId), [])
    assert.equal(await pass(DAY_MS), 0)
  })
})

describe('after an outage', () => {
  test('of several overdue reminders the last, before the start', async () => {
    const player = await person(h)
    await create(startIn(2 * DAY_MS), [player])
    h.clock.advance(2 * DAY_MS - HOUR_MS)
    const fired = await fire()
    assert.deepEqual(fired.map(({ outcome }) => outcome).sort(), ['dropped', 'told'])
    assert.deepEqual(await typesTold(h, player), [['game_reminder']])
  })

  test('after the start no reminder; the start itself up to 15 minutes late', async () => {
    for (const [late, told] of [
      [15 * 60_000 - 1_000, ['game_started']],
      [15 * 60_000 + 1_000, []],
    ] as const) {
      const player = await person(h)
      await create(startIn(DAY_MS), [player])
      h.clock.advance(DAY_MS + late)
      await fire()
      assert.deepEqual(await typesTold(h, player), [told])
    }
  })
})

describe('a producer’s own', () => {
  test('start adds nothing to ours, nor ours to it', async () => {
    for (const producerFirst of [true, false]) {
      const players = [await person(h)]
      const startsAt = startIn(HOUR_MS)
      const gameId = await create(startsAt, players)
      h.clock.advance(HOUR_MS)
      if (!producerFirst) await fire()
      await change(gameId, startsAt, players, 'game_started')
      await fire()
      assert.deepEqual(await typesTold(h, ...players), [['game_started']])
    }
  })

  test('reminder adds nothing once one of ours was told for that start', async () => {
    const players = [await person(h)]
    const startsAt = startIn(3 * HOUR_MS)
    const gameId = await create(startsAt, players)
    h.clock.advance(HOUR_MS)
    await fire()
    await change(gameId, startsAt, players, 'game_reminder')
    assert.deepEqual(await typesTold(h, ...players), [['game_reminder']])
  })
})

describe('races', () => {
  test('two processes that fire at once tell each once', async () => {
    const other = connect(h.database.url)
    const player = await person(h)
    for (let round = 0; round < 100; round += 1) {
      await create(startIn(HOUR_MS), [player])
      h.clock.advance(HOUR_MS)
      const fired = await Promise.all([fire(), fire(other), fire(), fire(other)])
      assert.equal(fired.flat().filter(({ outcome }) => outcome === 'told').length, 1)
    }
    const [types] = await typesTold(h, player)
    assert.equal(types!.length, 100)
    await other.close()
  })

  test('a cancellation or a move beside it: told before it, or never', async () => {
    const player = await person(h)
    for (let round = 0; round < 100; round += 1) {
      const startsAt = startIn(HOUR_MS)
      const gameId = await create(startsAt, [player])
      h.clock.advance(HOUR_MS)
      const type = round % 2 === 0 ? 'game_cancelled' : 'game_updated'
      const before = (await toldTo(h, player)).length
      const [fired] = await Promise.all([
        fire(),
        change(gameId, type === 'game_updated' ? startIn(2 * HOUR_MS) : startsAt, [player], type, { actor_id: player }),
      ])
      await fire()
      const told = (await toldTo(h, player)).length - before
      assert.equal(told, fired.filter(({ outcome }) => outcome === 'told').length)
      const left = await planOf(gameId)
      assert.equal(left.includes('game_started'), type === 'game_updated')
      await change(gameId, startsAt, [player], 'game_cancelled', { actor_id: player })
    }
  })
})
