import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { harness } from './support/app.ts'
import {
  atMinute,
  cloudEvent,
  makeFourPlayers,
  newGameId,
  readGame,
  readNotifications,
  readTypes,
  report,
  send,
  TYPES_EXCEPT_CANCELLATION,
} from './support/games.ts'

const h = harness()

type Ids = readonly number[]

/**
 * Makes four players and a game of the first of them. `step` reports an event of the game: its type, the players after
 * it, its minute and more fields of `data`.
 */
async function newStory() {
  const all = await makeFourPlayers(h)
  const game_id = newGameId()
  const step = (type: string, player_ids: Ids, minute: number, more: Record<string, unknown> = {}) =>
    report(h, cloudEvent(type, { game_id, creator_id: all[0], player_ids, ...more }, atMinute(minute)))
  return { all, game_id, step, three: all.slice(0, 3), readAll: () => readTypes(h, ...all) }
}

/** Returns how many game_full each player has. */
function countFull(typesByPlayer: string[][]): number[] {
  return typesByPlayer.map(types => types.filter(type => type === 'game_full').length)
}

describe('game_full', () => {
  for (const type of ['game_joined', 'game_created', 'game_updated']) {
    test(`game_full follows by itself, once, from the ${type} that makes four`, async () => {
      const { all, three, step, readAll } = await newStory()
      await step('game_created', three, 1)
      assert.equal(await step(type, all, 2, { actor_id: all[3] }), type === 'game_joined' ? 7 : 4)
      assert.deepEqual(countFull(await readAll()), [1, 1, 1, 1])
      assert.equal(await step('game_updated', all, 3, { place: 'Court 2' }), 0)
    })

    test(`game_full follows from a ${type} with four players that is the first event of its game`, async () => {
      const { all, step, readAll } = await newStory()
      await step(type, all, 1, { actor_id: all[3] })
      assert.deepEqual(countFull(await readAll()), [1, 1, 1, 1])
    })
  }

  test('a producer’s game_full for the same four players adds nothing, in either order and at any time', async () => {
    for (const [joined, full] of [
      [2, 2],
      [2, 3],
      [3, 2],
    ] as const) {
      const first = await newStory()
      await first.step('game_joined', first.all, joined, { actor_id: first.all[3] })
      assert.equal(await first.step('game_full', first.all, full), 0)
      const second = await newStory()
      assert.equal(await second.step('game_full', second.all, full), 4)
      await second.step('game_joined', second.all, joined, { actor_id: second.all[3] })
      for (const story of [first, second]) assert.deepEqual(countFull(await story.readAll()), [1, 1, 1, 1])
    }
  })

  test('a leave and a refill by the same player sends game_full again', async () => {
    const { all, three, step, readAll } = await newStory()
    await step('game_joined', all, 1, { actor_id: all[3] })
    await step('game_left', three, 2, { actor_id: all[3] })
    await step('game_joined', all, 3, { actor_id: all[3] })
    await step('game_full', all, 4)
    assert.deepEqual(countFull(await readAll()), [2, 2, 2, 2])
  })

  test('a refill that arrives before the leave it follows sends game_full again', async () => {
    const same = await newStory()
    await same.step('game_joined', same.all, 1, { actor_id: same.all[3] })
    assert.equal(await same.step('game_joined', same.all, 3, { actor_id: same.all[3] }), 3)
    assert.equal(await same.step('game_left', same.three, 2, { actor_id: same.all[3] }), 3 + 4)
    assert.deepEqual(countFull(await same.readAll()), [2, 2, 2, 2])

    const other = await newStory()
    const [eve] = await makeFourPlayers(h)
    const withEve = [...other.three, eve]
    await other.step('game_joined', other.all, 1, { actor_id: other.all[3] })
    assert.equal(await other.step('game_joined', withEve, 3, { actor_id: eve }), 3 + 4)
    assert.equal(await other.step('game_left', other.three, 2, { actor_id: other.all[3] }), 4)
    assert.deepEqual(countFull(await readTypes(h, ...other.all, eve)), [2, 2, 2, 1, 1])
  })

  test('a late event that made four sends no game_full if the game is not full any more', async () => {
    const { all, three, step, readAll } = await newStory()
    await step('game_left', three, 2, { actor_id: all[3] })
    await step('game_joined', all, 1, { actor_id: all[3] })
    await step('game_full', all, 1)
    assert.deepEqual(countFull(await readAll()), [0, 0, 0, 0])
  })

  test('a repeated event or the producer’s game_full does not bring back a deleted notification', async () => {
    const { all, game_id, step, readAll } = await newStory()
    const joined = cloudEvent(
      'game_joined',
      { game_id, creator_id: all[0], player_ids: all, actor_id: all[3] },
      atMinute(1),
    )
    await report(h, joined)
    await h.database.sql`delete from notification where user_id = any(${all})`
    assert.deepEqual((await send(h, joined)).body, { id: joined.id, status: 'duplicate', notifications: 7 })
    assert.equal(await step('game_full', all, 2), 0)
    assert.deepEqual((await readAll()).flat(), [])
  })
})

describe('game_reminder and game_started', () => {
  for (const type of ['game_reminder', 'game_started']) {
    test(`a producer’s ${type} is sent once for each starts_at, even if a reader has deleted it`, async () => {
      const { all, step } = await newStory()
      assert.equal(await step(type, all, 1), 4)
      await h.database.sql`delete from notification where user_id = ${all[0]}`
      assert.equal(await step(type, all, 2), 0)
      assert.equal(await step(type, all, 3, { starts_at: '2027-01-16T17:00:00Z' }), 0)
      assert.equal(await step(type, all, 4, { starts_at: '2027-01-17T18:00:00+01:00' }), 4)
    })

    test(`a late ${type} is for the current players, and for no player if the game has moved`, async () => {
      const { all, step, readAll } = await newStory()
      await step('game_updated', all.slice(2), 5)
      assert.equal(await step(type, all, 4), 2)
      assert.deepEqual(await readAll(), [[], [], [type], [type]])
      const moved = await newStory()
      await moved.step('game_updated', moved.three, 5, { starts_at: '2027-02-01T18:00:00Z' })
      assert.equal(await moved.step(type, moved.all, 4), 0)
    })
  }
})

describe('events that arrive late', () => {
  test('an event that is older than the newest one leaves the game as it is', async () => {
    const { all, game_id, step } = await newStory()
    await step('game_updated', all.slice(0, 2), 5, { place: 'Court 5', starts_at: '2027-03-01T18:00:00Z' })
    const known = await readGame(h, game_id)
    await step('game_joined', all.slice(0, 3), 4, { actor_id: all[2], place: 'Court 4' })
    await step('game_updated', [], 3)
    assert.deepEqual(await readGame(h, game_id), known)
  })

  test('a late join or leave of a live game still notifies, with the current state of the game', async () => {
    const { all, step } = await newStory()
    await step('game_updated', all.slice(0, 2), 5, { starts_at: '2027-03-01T18:00:00Z' })
    assert.equal(await step('game_joined', all.slice(0, 3), 4, { actor_id: all[2] }), 2)
    assert.equal(await step('game_left', [all[0]], 3, { actor_id: all[3] }), 2)
    const [joined, left] = await readNotifications(h, all[0])
    assert.match(joined!.message, /du lundi 1er\u00a0mars 2027 à 19\u00a0h\u00a000 \(2\/4\)\.$/)
    assert.match(left!.message, /du lundi 1er\u00a0mars .* Il reste 2 places\.$/)
    assert.equal(joined!.data.starts_at, '2027-03-01T18:00:00+00:00')
  })

  test('among equal times the later arrival wins, and times are compared to the microsecond', async () => {
    const { all, game_id, step } = await newStory()
    await step('game_updated', [all[0]], 5, { place: 'first' })
    await step('game_updated', [all[0]], 5, { place: 'second' })
    assert.equal((await readGame(h, game_id))!.place, 'second')
    const update = (place: string, time: string) =>
      report(h, cloudEvent('game_updated', { game_id, creator_id: all[0], player_ids: [], place }, { time }))
    await update('later', '2026-11-28T09:30:00.000002Z')
    await update('earlier', '2026-11-28T09:30:00.000001Z')
    assert.equal((await readGame(h, game_id))!.place, 'later')
  })

  test('events from two sources with the same game_id are about the same game', async () => {
    const { all, game_id, step } = await newStory()
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
  test('a cancellation applies even if it is older than other events', async () => {
    const { all, game_id, step } = await newStory()
    await step('game_updated', [all[0], all[1]], 5)
    assert.equal(await step('game_cancelled', [all[0], all[2]], 1, { actor_id: all[0] }), 2)
    const row = await readGame(h, game_id)
    assert.deepEqual([row!.cancelled, row!.player_ids], [true, [all[0], all[1]]])
  })

  test('a cancellation is final: no later event revives the game or notifies of it, score events aside', async () => {
    const { all, game_id, step, readAll } = await newStory()
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
    const { all, step } = await newStory()
    assert.equal(await step('game_cancelled', all, 1, { actor_id: all[0] }), 3)
    assert.equal(await step('game_joined', all, 2, { actor_id: all[3] }), 0)
  })
})

describe('score events', () => {
  const score = { sets: '6-4 6-3' }

  test('a score event makes a game known', async () => {
    const { all, game_id, step } = await newStory()
    await step('score_submitted', all, 1, { actor_id: all[1], score })
    assert.deepEqual((await readGame(h, game_id))!.player_ids, all)
  })

  test('a score event changes nothing of a game that is known from a game event or a score event', async () => {
    for (const type of ['game_created', 'score_submitted']) {
      const { all, game_id, step } = await newStory()
      await step(type, [all[0]], 1, { actor_id: all[0], score, place: 'Court 1' })
      const known = await readGame(h, game_id)
      assert.equal(await step('score_validated', all, 2, { actor_id: all[1], score, place: 'Court 2' }), 3)
      assert.deepEqual(await readGame(h, game_id), known)
    }
  })

  test('after a score event, an older game event still applies and may still make the game full', async () => {
    const { all, game_id, step } = await newStory()
    await step('score_submitted', all, 5, { actor_id: all[1], score })
    assert.equal(await step('game_joined', all, 1, { actor_id: all[3], place: 'Court 3' }), 7)
    assert.equal((await readGame(h, game_id))!.place, 'Court 3')
  })

  test('the text about a game without a known start has no date', async () => {
    const { all, step } = await newStory()
    await step('score_finalized', [all[0]], 1, { score, starts_at: undefined })
    assert.equal(
      (await readNotifications(h, all[0]))[0]!.message,
      'Le score de la partie est définitif\u00a0: 6-4 6-3.',
    )
  })
})
