import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { harness } from './support/app.ts'
import {
  atMinute,
  cloudEvent,
  readGame,
  readNotifications,
  report,
  TYPES_EXCEPT_CANCELLATION,
} from './support/games.ts'
import { newStory } from './support/story.ts'

const h = harness()

describe('game_reminder and game_started', () => {
  for (const type of ['game_reminder', 'game_started']) {
    test(`the service announces a reported ${type} once per starts_at, even if a player deletes the notification`, async () => {
      const { all, step } = await newStory(h)
      assert.equal(await step(type, all, 1), 4)
      await h.database.sql`delete from notification where user_id = ${all[0]}`
      assert.equal(await step(type, all, 2), 0)
      assert.equal(await step(type, all, 3, { starts_at: '2027-01-16T17:00:00Z' }), 0)
      assert.equal(await step(type, all, 4, { starts_at: '2027-01-17T18:00:00+01:00' }), 4)
    })

    test(`on a late ${type}, the service notifies the current players, or no player if starts_at has changed`, async () => {
      const { all, step, readAll } = await newStory(h)
      await step('game_updated', all.slice(2), 5)
      assert.equal(await step(type, all, 4), 2)
      assert.deepEqual(await readAll(), [[], [], [type], [type]])
      const moved = await newStory(h)
      await moved.step('game_updated', moved.three, 5, { starts_at: '2027-02-01T18:00:00Z' })
      assert.equal(await moved.step(type, moved.all, 4), 0)
    })
  }
})

describe('events that arrive late', () => {
  test('an event that is older than the newest event of its game does not change the game', async () => {
    const { all, game_id, step } = await newStory(h)
    await step('game_updated', all.slice(0, 2), 5, { place: 'Court 5', starts_at: '2027-03-01T18:00:00Z' })
    const known = await readGame(h, game_id)
    await step('game_joined', all.slice(0, 3), 4, { actor_id: all[2], place: 'Court 4' })
    await step('game_updated', [], 3)
    assert.deepEqual(await readGame(h, game_id), known)
  })

  test('on a late join or leave, the service sends notifications with the current start and number of players', async () => {
    const { all, step } = await newStory(h)
    await step('game_updated', all.slice(0, 2), 5, { starts_at: '2027-03-01T18:00:00Z' })
    assert.equal(await step('game_joined', all.slice(0, 3), 4, { actor_id: all[2] }), 2)
    assert.equal(await step('game_left', [all[0]], 3, { actor_id: all[3] }), 2)
    const [joined, left] = await readNotifications(h, all[0])
    assert.match(joined!.message, /du lundi 1er\u00a0mars 2027 à 19\u00a0h\u00a000 \(2\/4\)\.$/)
    assert.match(left!.message, /du lundi 1er\u00a0mars .* Il reste 2 places\.$/)
    assert.equal(joined!.data.starts_at, '2027-03-01T18:00:00+00:00')
  })

  test('if two events have the same time to the microsecond, the event that arrives later wins', async () => {
    const { all, game_id, step } = await newStory(h)
    await step('game_updated', [all[0]], 5, { place: 'first' })
    await step('game_updated', [all[0]], 5, { place: 'second' })
    assert.equal((await readGame(h, game_id))!.place, 'second')
    const update = (place: string, time: string) =>
      report(h, cloudEvent('game_updated', { game_id, creator_id: all[0], player_ids: [], place }, { time }))
    await update('later', '2026-11-28T09:30:00.000002Z')
    await update('earlier', '2026-11-28T09:30:00.000001Z')
    assert.equal((await readGame(h, game_id))!.place, 'later')
  })

  test('events from two sources with the same game_id change the same game', async () => {
    const { all, game_id, step } = await newStory(h)
    await step('game_updated', all.slice(0, 2), 5)
    await report(
      h,
      cloudEvent(
        'game_left',
        { game_id, creator_id: all[0], player_ids: [all[0]], actor_id: all[1] },
        { ...atMinute(6), source: '/other' },
      ),
    )
    assert.deepEqual((await readGame(h, game_id))!.player_ids, [all[0]])
  })
})

describe('the cancellation of a game', () => {
  test('a cancellation takes effect even if it is older than other events of the game', async () => {
    const { all, game_id, step } = await newStory(h)
    await step('game_updated', [all[0], all[1]], 5)
    assert.equal(await step('game_cancelled', [all[0], all[2]], 1, { actor_id: all[0] }), 2)
    const row = await readGame(h, game_id)
    assert.deepEqual([row!.cancelled, row!.player_ids], [true, [all[0], all[1]]])
  })

  test('after a cancellation no event revives the game, and only score events cause notifications', async () => {
    const { all, game_id, step, readAll } = await newStory(h)
    await step('game_cancelled', [], 1, { actor_id: all[0] })
    for (const type of [...TYPES_EXCEPT_CANCELLATION, 'game_cancelled']) {
      assert.equal(await step(type, all, 2, { actor_id: all[1] }), 0, type)
      assert.equal(await step(type, all, 0, { actor_id: all[1] }), 0, type)
    }
    assert.equal((await readGame(h, game_id))!.cancelled, true)
    assert.deepEqual((await readAll()).flat(), [])
    assert.equal(await step('score_finalized', all, 3, { score: { sets: '6-0 6-0' } }), 4)
  })

  test('a cancellation may be the first event of a game', async () => {
    const { all, step } = await newStory(h)
    assert.equal(await step('game_cancelled', all, 1, { actor_id: all[0] }), 3)
    assert.equal(await step('game_joined', all, 2, { actor_id: all[3] }), 0)
  })
})

describe('score events', () => {
  const score = { sets: '6-4 6-3' }

  test('on a score event about an unknown game, the intake saves the game', async () => {
    const { all, game_id, step } = await newStory(h)
    await step('score_submitted', all, 1, { actor_id: all[1], score })
    assert.deepEqual((await readGame(h, game_id))!.player_ids, all)
  })

  test('a score event does not change a game that an earlier game event or score event has created', async () => {
    for (const type of ['game_created', 'score_submitted']) {
      const { all, game_id, step } = await newStory(h)
      await step(type, [all[0]], 1, { actor_id: all[0], score, place: 'Court 1' })
      const known = await readGame(h, game_id)
      assert.equal(await step('score_validated', all, 2, { actor_id: all[1], score, place: 'Court 2' }), 3)
      assert.deepEqual(await readGame(h, game_id), known)
    }
  })

  test('a game event changes the game even if a score event is newer, and it can cause game_full', async () => {
    const { all, game_id, step } = await newStory(h)
    await step('score_submitted', all, 5, { actor_id: all[1], score })
    assert.equal(await step('game_joined', all, 1, { actor_id: all[3], place: 'Court 3' }), 7)
    assert.equal((await readGame(h, game_id))!.place, 'Court 3')
  })

  test('a message contains no date if the start of the game is unknown', async () => {
    const { all, step } = await newStory(h)
    await step('score_finalized', [all[0]], 1, { score, starts_at: undefined })
    assert.equal(
      (await readNotifications(h, all[0]))[0]!.message,
      'Le score de la partie est définitif\u00a0: 6-4 6-3.',
    )
  })
})
