import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { harness } from './support/app.ts'
import { makePlayer, newGameId, readTypes, report, sendBatch } from './support/games.ts'
import { DAY_MS, HOUR_MS, schedule } from './support/schedule.ts'

const h = harness()
const { startIn, fireAllDue, advanceAndFire, gameEvent, createGame, changeGame, readSchedule } = schedule(h)

describe('an event of a producer about a start or a reminder', () => {
  test('if a producer reports a start before or after the schedule fires it, the start is announced exactly once', async () => {
    for (const producerFirst of [true, false]) {
      const players = [await makePlayer(h)]
      const startsAt = startIn(HOUR_MS)
      const gameId = await createGame(startsAt, players)
      h.clock.advance(HOUR_MS)
      if (!producerFirst) await fireAllDue()
      await changeGame(gameId, startsAt, players, { type: 'game_started' })
      await fireAllDue()
      assert.deepEqual(await readTypes(h, ...players), [['game_started']])
    }
  })

  test('after the schedule fired a reminder, a producer’s reminder for the same start has no effect, and later planned reminders stay', async () => {
    const players = [await makePlayer(h)]
    const startsAt = startIn(2 * DAY_MS)
    const gameId = await createGame(startsAt, players)
    assert.equal(await advanceAndFire(DAY_MS), 1)
    assert.equal(await changeGame(gameId, startsAt, players, { type: 'game_reminder' }), 0)
    assert.equal(await advanceAndFire(DAY_MS), 2)
    assert.deepEqual(await readTypes(h, ...players), [['game_reminder', 'game_reminder', 'game_started']])
  })

  test('a producer’s first reminder for a start replaces the next planned reminder, and a second reminder for the same start has no effect', async () => {
    const players = [await makePlayer(h)]
    const startsAt = startIn(2 * DAY_MS)
    const gameId = await createGame(startsAt, players)
    assert.equal(await changeGame(gameId, startsAt, players, { type: 'game_reminder' }), 1)
    assert.equal(await changeGame(gameId, startsAt, players, { type: 'game_reminder' }), 0)
    assert.deepEqual(await readSchedule(gameId), ['game_reminder', 'game_started'])
    // If the game moves to another start and back, the replaced reminder is not planned again.
    await changeGame(gameId, startIn(9 * DAY_MS), players)
    await changeGame(gameId, startsAt, players)
    assert.equal(await advanceAndFire(2 * DAY_MS), 2)
    assert.deepEqual(await readTypes(h, ...players), [['game_reminder', 'game_reminder', 'game_started']])
  })

  test('a producer’s reminder replaces all overdue reminders of the game', async () => {
    const players = [await makePlayer(h)]
    const startsAt = startIn(2 * DAY_MS)
    const gameId = await createGame(startsAt, players)
    h.clock.advance(2 * DAY_MS - HOUR_MS)
    assert.equal(await changeGame(gameId, startsAt, players, { type: 'game_reminder' }), 1)
    assert.deepEqual(await fireAllDue(), [])
    assert.deepEqual(await readSchedule(gameId), ['game_started'])
  })

  test('if a game’s first event is a producer’s reminder, this event replaces the first planned reminder, unless the game moves afterwards', async () => {
    const players = [await makePlayer(h)]
    const known = newGameId()
    const startsAt = startIn(2 * DAY_MS)
    await report(h, gameEvent(known, startsAt, players, { type: 'game_reminder' }))
    assert.deepEqual(await readSchedule(known), ['game_reminder', 'game_started'])
    const movedAway = newGameId()
    const events = [
      gameEvent(movedAway, startsAt, players, { type: 'game_reminder' }),
      gameEvent(movedAway, startIn(3 * DAY_MS), players),
    ]
    await sendBatch(h, events)
    assert.deepEqual(await readSchedule(movedAway), ['game_reminder', 'game_reminder', 'game_started'])
  })
})
