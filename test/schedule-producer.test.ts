import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { harness } from './support/app.ts'
import { happens, newGame, person, sendBatch, typesAnnounced } from './support/games.ts'
import { DAY_MS, HOUR_MS, schedule } from './support/schedule.ts'

const h = harness()
const { startIn, fire, pass, event, create, change, planOf } = schedule(h)

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
      assert.deepEqual(await typesAnnounced(h, ...players), [['game_started']])
    }
  })

  test('reminder adds nothing once one of ours was told for that start; our others stay', async () => {
    const players = [await person(h)]
    const startsAt = startIn(2 * DAY_MS)
    const gameId = await create(startsAt, players)
    assert.equal(await pass(DAY_MS), 1)
    assert.equal(await change(gameId, startsAt, players, 'game_reminder'), 0)
    assert.equal(await pass(DAY_MS), 2)
    assert.deepEqual(await typesAnnounced(h, ...players), [['game_reminder', 'game_reminder', 'game_started']])
  })

  test('reminder takes the place of our next one, and a second one of theirs adds nothing', async () => {
    const players = [await person(h)]
    const startsAt = startIn(2 * DAY_MS)
    const gameId = await create(startsAt, players)
    assert.equal(await change(gameId, startsAt, players, 'game_reminder'), 1)
    assert.equal(await change(gameId, startsAt, players, 'game_reminder'), 0)
    assert.deepEqual(await planOf(gameId), ['game_reminder', 'game_started'])
    // Nor does it come back when the game does.
    await change(gameId, startIn(9 * DAY_MS), players)
    await change(gameId, startsAt, players)
    assert.equal(await pass(2 * DAY_MS), 2)
    assert.deepEqual(await typesAnnounced(h, ...players), [['game_reminder', 'game_reminder', 'game_started']])
  })

  test('reminder takes the place of all of ours that are overdue', async () => {
    const players = [await person(h)]
    const startsAt = startIn(2 * DAY_MS)
    const gameId = await create(startsAt, players)
    h.clock.advance(2 * DAY_MS - HOUR_MS)
    assert.equal(await change(gameId, startsAt, players, 'game_reminder'), 1)
    assert.deepEqual(await fire(), [])
    assert.deepEqual(await planOf(gameId), ['game_started'])
  })

  test('reminder that makes a game known takes the place of the first; one of a start that is left again of none', async () => {
    const players = [await person(h)]
    const known = newGame()
    const startsAt = startIn(2 * DAY_MS)
    await happens(h, event('game_reminder', known, startsAt, players))
    assert.deepEqual(await planOf(known), ['game_reminder', 'game_started'])
    const left = newGame()
    const events = [
      event('game_reminder', left, startsAt, players),
      event('game_updated', left, startIn(3 * DAY_MS), players),
    ]
    await sendBatch(h, events)
    assert.deepEqual(await planOf(left), ['game_reminder', 'game_reminder', 'game_started'])
  })
})
