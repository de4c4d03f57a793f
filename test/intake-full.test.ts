import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { harness } from './support/app.ts'
import { atMinute, cloudEvent, makeFourPlayers, readTypes, report, send } from './support/games.ts'
import { newStory } from './support/story.ts'

const h = harness()

/** Returns the number of game_full notifications of each player. */
function countFull(typesByPlayer: string[][]): number[] {
  return typesByPlayer.map(types => types.filter(type => type === 'game_full').length)
}

describe('game_full', () => {
  for (const type of ['game_joined', 'game_created', 'game_updated']) {
    test(`if a ${type} adds the fourth player, each player gets game_full exactly once`, async () => {
      const { all, three, step, readAll } = await newStory(h)
      await step('game_created', three, 1)
      assert.equal(await step(type, all, 2, { actor_id: all[3] }), type === 'game_joined' ? 7 : 4)
      assert.deepEqual(countFull(await readAll()), [1, 1, 1, 1])
      assert.equal(await step('game_updated', all, 3, { place: 'Court 2' }), 0)
    })

    test(`if the first event of a game is a ${type} with four players, each player gets game_full`, async () => {
      const { all, step, readAll } = await newStory(h)
      await step(type, all, 1, { actor_id: all[3] })
      assert.deepEqual(countFull(await readAll()), [1, 1, 1, 1])
    })
  }

  test('if the producer reports game_full before or after the fourth join, each player gets game_full only once', async () => {
    for (const [joined, full] of [
      [2, 2],
      [2, 3],
      [3, 2],
    ] as const) {
      const first = await newStory(h)
      await first.step('game_joined', first.all, joined, { actor_id: first.all[3] })
      assert.equal(await first.step('game_full', first.all, full), 0)
      const second = await newStory(h)
      assert.equal(await second.step('game_full', second.all, full), 4)
      await second.step('game_joined', second.all, joined, { actor_id: second.all[3] })
      for (const story of [first, second]) assert.deepEqual(countFull(await story.readAll()), [1, 1, 1, 1])
    }
  })

  test('if a player leaves a full game and joins it again, each player gets a second game_full', async () => {
    const { all, three, step, readAll } = await newStory(h)
    await step('game_joined', all, 1, { actor_id: all[3] })
    await step('game_left', three, 2, { actor_id: all[3] })
    await step('game_joined', all, 3, { actor_id: all[3] })
    await step('game_full', all, 4)
    assert.deepEqual(countFull(await readAll()), [2, 2, 2, 2])
  })

  test('if a leave is reported only after the join that refills the game, the players get a second game_full', async () => {
    const same = await newStory(h)
    await same.step('game_joined', same.all, 1, { actor_id: same.all[3] })
    assert.equal(await same.step('game_joined', same.all, 3, { actor_id: same.all[3] }), 3)
    assert.equal(await same.step('game_left', same.three, 2, { actor_id: same.all[3] }), 3 + 4)
    assert.deepEqual(countFull(await same.readAll()), [2, 2, 2, 2])

    const other = await newStory(h)
    const [eve] = await makeFourPlayers(h)
    const withEve = [...other.three, eve]
    await other.step('game_joined', other.all, 1, { actor_id: other.all[3] })
    assert.equal(await other.step('game_joined', withEve, 3, { actor_id: eve }), 3 + 4)
    assert.equal(await other.step('game_left', other.three, 2, { actor_id: other.all[3] }), 4)
    assert.deepEqual(countFull(await readTypes(h, ...other.all, eve)), [2, 2, 2, 1, 1])
  })

  test('if the join of the fourth player arrives when the game is no longer full, no player gets game_full', async () => {
    const { all, three, step, readAll } = await newStory(h)
    await step('game_left', three, 2, { actor_id: all[3] })
    await step('game_joined', all, 1, { actor_id: all[3] })
    await step('game_full', all, 1)
    assert.deepEqual(countFull(await readAll()), [0, 0, 0, 0])
  })

  test('neither a repeated event nor a producer’s game_full restores a deleted notification', async () => {
    const { all, game_id, step, readAll } = await newStory(h)
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
