import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { eraseUser } from '../src/personal-data.ts'
import { harness } from './support/app.ts'
import { announcedTo, four, happens, newGame, person, sendBatch, typesAnnounced } from './support/games.ts'
import { DAY_MS, HOUR_MS, schedule, told } from './support/schedule.ts'

const h = harness()
const { startIn, fire, pass, event, create, change, planOf } = schedule(h)

describe('a game', () => {
  test('is reminded of a day and two hours before, and its start is told', async () => {
    const players = [await person(h), await person(h, 'Bob', 'en')]
    const startsAt = startIn(3 * DAY_MS)
    await create(startsAt, players)
    assert.equal(await pass(3 * DAY_MS + HOUR_MS), 3)
    for (const player of players) {
      const rows = await announcedTo(h, player)
      assert.deepEqual(
        rows.map(row => row.type),
        ['game_reminder', 'game_reminder', 'game_started'],
      )
      assert.deepEqual(Object.keys(rows[0]!.data), ['game_id', 'starts_at'])
    }
    const [first, second, started] = await announcedTo(h, players[0]!)
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
    assert.deepEqual(await typesAnnounced(h, player), [['game_started']])
    for (const startsAt of [startIn(-HOUR_MS), h.clock.now().toISOString()]) {
      assert.deepEqual(await planOf(await create(startsAt, [player])), [])
    }
  })

  test('made known by a score has no schedule, until an event of its own', async () => {
    const players = [await person(h), await person(h)]
    const [gameId, startsAt] = [newGame(), startIn(2 * DAY_MS)]
    const score = { actor_id: players[0], score: { sets: '6-4' } }
    await happens(h, event('score_submitted', gameId, startsAt, players, score))
    assert.deepEqual(await planOf(gameId), [])
    await change(gameId, startsAt, players)
    assert.deepEqual(await planOf(gameId), ['game_reminder', 'game_reminder', 'game_started'])
  })

  test('in a process whose own zone is Tokyo’s', async () => {
    const zone = process.env.TZ
    process.env.TZ = 'Asia/Tokyo'
    try {
      const player = await person(h)
      await create('2027-03-29T09:00:00+02:00', [player])
      const dues = await h.database.sql<{ due_at: Date }>`select due_at from game_schedule order by due_at desc limit 3`
      // The day before was the one on which clocks went forward; 09:00 stays 09:00.
      assert.deepEqual(
        dues.map(row => row.due_at.toISOString()),
        ['2027-03-29T07:00:00.000Z', '2027-03-29T05:00:00.000Z', '2027-03-28T07:00:00.000Z'],
      )
      h.clock.set('2027-03-28T07:00:00Z')
      await fire()
      assert.match((await announcedTo(h, player))[0]!.message, /^Votre partie commence demain à 9\sh\s00\.$/)
    } finally {
      if (zone === undefined) delete process.env.TZ
      else process.env.TZ = zone
    }
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
    assert.deepEqual(await typesAnnounced(h, ...players), [['game_reminder', 'game_reminder', 'game_started']])
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
    const reminded = (await typesAnnounced(h, anna, bob, chloe)).map(types => types.includes('game_reminder'))
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

test('the game itself is asked again when something fires, whatever is planned', async () => {
  const player = await person(h)
  const [cancelled, moved] = [await create(startIn(HOUR_MS), [player]), await create(startIn(HOUR_MS), [player])]
  await h.database.sql`update game set cancelled = true where id = ${cancelled}`
  await h.database.sql`update game set starts_at = starts_at + interval '1 second' where id = ${moved}`
  h.clock.advance(HOUR_MS)
  assert.deepEqual(
    (await fire()).map(({ outcome }) => outcome),
    ['dropped', 'dropped'],
  )
  assert.deepEqual(await announcedTo(h, player), [])
})

describe('facts between', () => {
  test('a fact that comes after the due time and before the look takes nothing away', async () => {
    const [anna, bob] = [await person(h), await person(h)]
    const startsAt = startIn(2 * HOUR_MS)
    const gameId = await create(startIn(2 * HOUR_MS), [anna])
    h.clock.advance(2 * HOUR_MS)
    await change(gameId, startsAt, [anna, bob], 'game_joined', { actor_id: bob })
    assert.equal(told(await fire()), 1)
    assert.deepEqual(await typesAnnounced(h, bob), [['game_started']])
  })

  test('moved onto a time at which something else was due', async () => {
    const players = [await person(h)]
    const first = startIn(4 * DAY_MS)
    const gameId = await create(first, players)
    // The reminder of two hours is where the one of a day was to be.
    await change(gameId, new Date(Date.parse(first) - 22 * HOUR_MS).toISOString(), players)
    await change(gameId, first, players)
    assert.equal((await planOf(gameId)).length, 3)
    assert.equal(await pass(5 * DAY_MS, HOUR_MS), 3)
  })

  test('moved within one batch: planned once, for where it ends', async () => {
    const players = [await person(h)]
    const gameId = newGame()
    const starts = [3, 5, 4].map(days => startIn(days * DAY_MS))
    await sendBatch(
      h,
      starts.map(startsAt => event('game_updated', gameId, startsAt, players)),
    )
    const rows = await h.database.sql<{ starts_at: Date }>`
      select starts_at from game_schedule where game_id = ${gameId}`
    assert.deepEqual(
      rows.map(row => row.starts_at.toISOString()),
      [starts[2], starts[2], starts[2]],
    )
  })

  test('a player who deletes their account is not reminded, the others are', async () => {
    const [anna, bob] = [await person(h), await person(h)]
    await create(startIn(3 * HOUR_MS), [anna, bob])
    assert.equal(await eraseUser(h.database.sql, anna), true)
    assert.equal(await pass(2 * HOUR_MS), 1)
    assert.deepEqual(await typesAnnounced(h, anna, bob), [[], ['game_reminder']])
  })
})

describe('after an outage', () => {
  test('of several overdue reminders the last, before the start', async () => {
    const player = await person(h)
    await create(startIn(2 * DAY_MS), [player])
    h.clock.advance(2 * DAY_MS - HOUR_MS)
    const fired = await fire()
    assert.deepEqual(fired.map(({ outcome, lateSeconds }) => [outcome, Math.round(lateSeconds / 3600)]).toSorted(), [
      ['dropped', 23],
      ['told', 1],
    ])
    assert.match((await announcedTo(h, player))[0]!.message, /^Votre partie commence aujourd'hui à/)
  })

  test('after the start no reminder; the start itself up to 15 minutes late', async () => {
    for (const [late, types] of [
      [15 * 60_000 - 1_000, ['game_started']],
      [15 * 60_000 + 1_000, []],
    ] as const) {
      const player = await person(h)
      await create(startIn(DAY_MS), [player])
      h.clock.advance(DAY_MS + late)
      await fire()
      assert.deepEqual(await typesAnnounced(h, player), [types])
    }
  })
})
