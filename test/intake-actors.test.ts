import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { eraseUser } from '../src/personal-data.ts'
import { harness } from './support/app.ts'
import {
  cloudEvent,
  makeFourPlayers,
  makePlayer,
  newGameId,
  readGame,
  readNotifications,
  report,
} from './support/games.ts'

const h = harness()

const DATE = 'samedi 16\u00a0janvier 2027 à 18\u00a0h\u00a000'

describe('recipients and actors', () => {
  test('a recipient without an account is skipped, and an actor without an account is named "Un joueur"', async () => {
    const anna = await makePlayer(h, 'Anna')
    const state = { game_id: newGameId(), creator_id: anna, player_ids: [anna, 900_001, 900_002], actor_id: 900_002 }
    h.logged.length = 0
    assert.equal(await report(h, cloudEvent('game_joined', state)), 1)
    const [notification] = await readNotifications(h, anna)
    assert.equal(notification!.message, `Un joueur a rejoint la partie du ${DATE} (3/4).`)
    assert.equal(notification!.actor_name_length, 0)
    assert.equal(notification!.data.actor_id, 900_002)
    assert.deepEqual(
      h.logged.filter(line => line.skipped !== undefined).map(line => [line.level, line.skipped]),
      [[20, 1]],
    )
  })

  test('if an event has no actor_id, its message begins with "Un joueur" and its data has no actor_id', async () => {
    const anna = await makePlayer(h, 'Anna')
    await report(h, cloudEvent('game_cancelled', { game_id: newGameId(), creator_id: anna, player_ids: [] }))
    const [notification] = await readNotifications(h, anna)
    assert.equal(notification!.message, `Un joueur a annulé la partie du ${DATE}.`)
    assert.deepEqual(Object.keys(notification!.data), ['game_id', 'starts_at'])
  })

  test('markup and emoji in a name stay plain text, and actor_name_length counts characters as PostgreSQL does', async () => {
    const [anna, zoe] = [await makePlayer(h, 'Anna'), await makePlayer(h, '$&<b>{A} Zoé🎾')]
    const state = { game_id: newGameId(), creator_id: anna, player_ids: [anna, zoe], actor_id: zoe }
    await report(h, cloudEvent('game_joined', state))
    const [notification] = await h.database.sql`
      select substr(message, actor_name_length + 1) as rest from notification where user_id = ${anna}`
    assert.equal(notification!.rest, ` a rejoint la partie du ${DATE} (2/4).`)
  })

  test('the deletion of a user removes the user from games and from the notifications of other users', async () => {
    const [anna, bob, chloe] = await makeFourPlayers(h)
    const game_id = newGameId()
    await report(
      h,
      cloudEvent('game_joined', { game_id, creator_id: bob, player_ids: [anna, bob, chloe], actor_id: bob }),
    )
    await eraseUser(h.database.sql, bob)
    const row = await readGame(h, game_id)
    assert.deepEqual([row!.creator_id, row!.player_ids], [null, [anna, chloe]])
    assert.equal((await readNotifications(h, anna))[0]!.message, `Un joueur a rejoint la partie du ${DATE} (3/4).`)
    const state = { game_id, creator_id: bob, player_ids: [anna, bob], actor_id: chloe }
    assert.equal(await report(h, cloudEvent('game_left', state)), 1)
  })
})
