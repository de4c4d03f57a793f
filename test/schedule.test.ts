import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { eraseUser } from '../src/personal-data.ts'
import { harness } from './support/app.ts'
import {
  makeFourPlayers,
  makePlayer,
  newGameId,
  readNotifications,
  readTypes,
  report,
  sendBatch,
} from './support/games.ts'
import { countAnnounced, DAY_MS, HOUR_MS, schedule } from './support/schedule.ts'

const h = harness()
const { startIn, fireAllDue, advanceAndFire, gameEvent, createGame, changeGame, readSchedule } = schedule(h)

describe('the reminders and the start of a game', () => {
  test('players get reminders one day and two hours before a game, and an announcement when the game starts', async () => {
    const players = [await makePlayer(h), await makePlayer(h, 'Bob', 'en')]
    const startsAt = startIn(3 * DAY_MS)
    await createGame(startsAt, players)
    assert.equal(await advanceAndFire(3 * DAY_MS + HOUR_MS), 3)
    for (const player of players) {
      const rows = await readNotifications(h, player)
      assert.deepEqual(
        rows.map(row => row.type),
        ['game_reminder', 'game_reminder', 'game_started'],
      )
      assert.deepEqual(Object.keys(rows[0]!.data), ['game_id', 'starts_at'])
    }
    const [first, second, started] = await readNotifications(h, players[0]!)
    assert.match(first!.message, /^Votre partie commence demain, [^,]+, à \d+\sh\s\d\d\.$/)
    assert.match(second!.message, /^Votre partie commence aujourd'hui à \d+\sh\s\d\d\.$/)
    assert.match(started!.message, /^Votre partie de \d+\sh\s\d\d a commencé\./)
  })

  test('the reminders of a game 60 days ahead are sent on time', async () => {
    const [player] = [await makePlayer(h)]
    await createGame(startIn(60 * DAY_MS), [player])
    assert.equal(await advanceAndFire(59 * DAY_MS, 6 * HOUR_MS), 1)
    assert.equal(await advanceAndFire(DAY_MS), 2)
  })

  test('the service plans no due time that has already passed when the first event of the game arrives', async () => {
    const player = await makePlayer(h)
    await createGame(startIn(HOUR_MS), [player])
    assert.equal(await advanceAndFire(2 * HOUR_MS), 1)
    assert.deepEqual(await readTypes(h, player), [['game_started']])
    for (const startsAt of [startIn(-HOUR_MS), h.clock.now().toISOString()]) {
      assert.deepEqual(await readSchedule(await createGame(startsAt, [player])), [])
    }
  })

  test('a game that is known only from a score has no schedule until its first game event', async () => {
    const players = [await makePlayer(h), await makePlayer(h)]
    const [gameId, startsAt] = [newGameId(), startIn(2 * DAY_MS)]
    const score = { actor_id: players[0], score: { sets: '6-4' } }
    await report(h, gameEvent(gameId, startsAt, players, { type: 'score_submitted', ...score }))
    assert.deepEqual(await readSchedule(gameId), [])
    await changeGame(gameId, startsAt, players)
    assert.deepEqual(await readSchedule(gameId), ['game_reminder', 'game_reminder', 'game_started'])
  })

  test('a process in the time zone of Tokyo plans reminders and writes times in the configured time zone', async () => {
    const zone = process.env.TZ
    process.env.TZ = 'Asia/Tokyo'
    try {
      const player = await makePlayer(h)
      await createGame('2027-03-29T09:00:00+02:00', [player])
      const dues = await h.database.sql<{ due_at: Date }>`select due_at from game_schedule order by due_at desc limit 3`
      // In Paris, the clocks go forward at 02:00 on 28 March. The game starts at 09:00 on 29 March, and the one-day
      // reminder is due at 09:00 on 28 March. Both times are in summer time, in which 09:00 is 07:00 UTC.
      assert.deepEqual(
        dues.map(row => row.due_at.toISOString()),
        ['2027-03-29T07:00:00.000Z', '2027-03-29T05:00:00.000Z', '2027-03-28T07:00:00.000Z'],
      )
      h.clock.set('2027-03-28T07:00:00Z')
      await fireAllDue()
      assert.match(
        (await readNotifications(h, player))[0]!.message,
        /^Votre partie commence demain, [^,]+, à 9\sh\s00\.$/,
      )
    } finally {
      if (zone === undefined) delete process.env.TZ
      else process.env.TZ = zone
    }
  })
})

describe('changes of a game', () => {
  test('if a game moves five times and then back to its first start, each reminder is sent exactly once', async () => {
    const players = [await makePlayer(h)]
    const first = startIn(4 * DAY_MS)
    const gameId = await createGame(first, players)
    for (const days of [5, 6, 7, 3, 8]) await changeGame(gameId, startIn(days * DAY_MS), players)
    await changeGame(gameId, first, players)
    assert.equal((await readSchedule(gameId)).length, 3)
    assert.equal(await advanceAndFire(9 * DAY_MS), 3)
    assert.deepEqual(await readTypes(h, ...players), [['game_reminder', 'game_reminder', 'game_started']])
  })

  test('a reminder is not sent again if the game moves to another start and back', async () => {
    const players = [await makePlayer(h)]
    const first = startIn(DAY_MS + HOUR_MS)
    const gameId = await createGame(first, players)
    assert.equal(await advanceAndFire(2 * HOUR_MS), 1)
    await changeGame(gameId, startIn(5 * DAY_MS), players)
    await changeGame(gameId, first, players)
    assert.equal(await advanceAndFire(2 * DAY_MS), 2)
  })

  test('a player who left gets no reminder, and a player who joined gets a reminder', async () => {
    const [anna, bob, chloe] = await makeFourPlayers(h)
    const startsAt = startIn(3 * HOUR_MS)
    const gameId = await createGame(startsAt, [anna, bob])
    await changeGame(gameId, startsAt, [anna], { type: 'game_left', actor_id: bob })
    await changeGame(gameId, startsAt, [anna, chloe], { type: 'game_joined', actor_id: chloe })
    await advanceAndFire(2 * HOUR_MS)
    const reminded = (await readTypes(h, anna, bob, chloe)).map(types => types.includes('game_reminder'))
    assert.deepEqual(reminded, [true, false, true])
  })

  test('after a cancellation neither reminders nor the start are announced, and a later event of the game plans no due times', async () => {
    const players = [await makePlayer(h)]
    const startsAt = startIn(3 * HOUR_MS)
    const gameId = await createGame(startsAt, players)
    await changeGame(gameId, startsAt, players, { type: 'game_cancelled' })
    assert.deepEqual(await readSchedule(gameId), [])
    await changeGame(gameId, startIn(5 * HOUR_MS), players)
    assert.deepEqual(await readSchedule(gameId), [])
    assert.equal(await advanceAndFire(DAY_MS), 0)
  })
})

test('firing announces nothing for a cancelled or moved game, even if its due times are still in the schedule', async () => {
  const player = await makePlayer(h)
  const [cancelled, moved] = [
    await createGame(startIn(HOUR_MS), [player]),
    await createGame(startIn(HOUR_MS), [player]),
  ]
  await h.database.sql`update game set cancelled = true where id = ${cancelled}`
  await h.database.sql`update game set starts_at = starts_at + interval '1 second' where id = ${moved}`
  h.clock.advance(HOUR_MS)
  assert.deepEqual(
    (await fireAllDue()).map(({ outcome }) => outcome),
    ['dropped', 'dropped'],
  )
  assert.deepEqual(await readNotifications(h, player), [])
})

describe('events between a due time and its firing', () => {
  test('an event between a due time and its firing does not remove this due time', async () => {
    const [anna, bob] = [await makePlayer(h), await makePlayer(h)]
    const startsAt = startIn(2 * HOUR_MS)
    const gameId = await createGame(startIn(2 * HOUR_MS), [anna])
    h.clock.advance(2 * HOUR_MS)
    await changeGame(gameId, startsAt, [anna, bob], { type: 'game_joined', actor_id: bob })
    assert.equal(countAnnounced(await fireAllDue()), 1)
    assert.deepEqual(await readTypes(h, bob), [['game_started']])
  })

  test('if a game moves, its new reminders are planned, even if one of them has the due time of an old reminder', async () => {
    const players = [await makePlayer(h)]
    const first = startIn(4 * DAY_MS)
    const gameId = await createGame(first, players)
    // The two-hour reminder for the new start has the same due time as the one-day reminder for the old start.
    await changeGame(gameId, new Date(Date.parse(first) - 22 * HOUR_MS).toISOString(), players)
    await changeGame(gameId, first, players)
    assert.equal((await readSchedule(gameId)).length, 3)
    assert.equal(await advanceAndFire(5 * DAY_MS, HOUR_MS), 3)
  })

  test('if a batch moves a game several times, its due times are planned only for the last start', async () => {
    const players = [await makePlayer(h)]
    const gameId = newGameId()
    const starts = [3, 5, 4].map(days => startIn(days * DAY_MS))
    await sendBatch(
      h,
      starts.map(startsAt => gameEvent(gameId, startsAt, players)),
    )
    const rows = await h.database.sql<{ starts_at: Date }>`
      select starts_at from game_schedule where game_id = ${gameId}`
    assert.deepEqual(
      rows.map(row => row.starts_at.toISOString()),
      [starts[2], starts[2], starts[2]],
    )
  })

  test('a player who deletes their account gets no reminder, and the other players get their reminders', async () => {
    const [anna, bob] = [await makePlayer(h), await makePlayer(h)]
    await createGame(startIn(3 * HOUR_MS), [anna, bob])
    assert.equal(await eraseUser(h.database.sql, anna), true)
    assert.equal(await advanceAndFire(2 * HOUR_MS), 1)
    assert.deepEqual(await readTypes(h, anna, bob), [[], ['game_reminder']])
  })
})

describe('due times after an outage', () => {
  test('if several reminders of a game are overdue before its start, only the last one is sent', async () => {
    const player = await makePlayer(h)
    await createGame(startIn(2 * DAY_MS), [player])
    h.clock.advance(2 * DAY_MS - HOUR_MS)
    const fired = await fireAllDue()
    assert.deepEqual(fired.map(({ outcome, lateSeconds }) => [outcome, Math.round(lateSeconds / 3600)]).toSorted(), [
      ['dropped', 23],
      ['told', 1],
    ])
    assert.match((await readNotifications(h, player))[0]!.message, /^Votre partie commence aujourd'hui à/)
  })

  test('after a game’s start no overdue reminder is sent, but a start that is at most 15 minutes overdue is announced', async () => {
    for (const [lateMs, types] of [
      [15 * 60_000 - 1_000, ['game_started']],
      [15 * 60_000 + 1_000, []],
    ] as const) {
      const player = await makePlayer(h)
      await createGame(startIn(DAY_MS), [player])
      h.clock.advance(DAY_MS + lateMs)
      await fireAllDue()
      assert.deepEqual(await readTypes(h, player), [types])
    }
  })
})
