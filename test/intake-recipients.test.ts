import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { harness, INTAKE_KEY } from './support/app.ts'
import {
  cloudEvent,
  makeFourPlayers,
  newGameId,
  readGame,
  readNotifications,
  readTypes,
  report,
  send,
} from './support/games.ts'

const h = harness()

const DATE = 'samedi 16\u00a0janvier 2027 à 18\u00a0h\u00a000'
const STARTS_AT = '2027-01-16T17:00:00+00:00'

describe('the recipients and the text of each notification type', () => {
  test('on game_joined, the service notifies the creator and the players, except the player who joined', async () => {
    const [anna, bob, chloe, david] = await makeFourPlayers(h)
    const game_id = newGameId()
    const player_ids = [bob, chloe]
    const count = await report(h, cloudEvent('game_joined', { game_id, creator_id: anna, player_ids, actor_id: chloe }))
    assert.equal(count, 2)
    assert.deepEqual(await readNotifications(h, anna), [
      {
        type: 'game_joined',
        title: 'Un joueur a rejoint la partie',
        message: `Chloé a rejoint la partie du ${DATE} (2/4).`,
        data: { game_id, actor_id: chloe, starts_at: STARTS_AT },
        actor_name_length: 5,
      },
    ])
    const [english] = await readNotifications(h, bob)
    assert.equal(english!.message, 'Chloé joined the game on Saturday 16 January 2027 at 18:00 (2/4).')
    assert.equal(english!.title, 'A player joined')
    assert.deepEqual(await readTypes(h, chloe, david), [[], []])
  })

  test('the members of data in a notification always have the same order', async () => {
    const [anna, bob] = await makeFourPlayers(h)
    const score = { sets: '6-4 6-3', id: 3 }
    await report(
      h,
      cloudEvent('game_left', { game_id: newGameId(), creator_id: anna, player_ids: [anna], actor_id: bob }),
    )
    await report(
      h,
      cloudEvent('score_submitted', {
        game_id: newGameId(),
        creator_id: anna,
        player_ids: [anna],
        actor_id: bob,
        score,
      }),
    )
    const notifications = await readNotifications(h, anna)
    assert.deepEqual(
      notifications.map(({ data }) => Object.keys(data)),
      [
        ['game_id', 'actor_id', 'starts_at'],
        ['game_id', 'actor_id', 'score_id'],
      ],
    )
  })

  test('on game_left, the service notifies the creator and the players, except the player who left', async () => {
    const [anna, bob, chloe] = await makeFourPlayers(h)
    const state = { game_id: newGameId(), creator_id: anna, player_ids: [anna, bob], actor_id: chloe }
    assert.equal(await report(h, cloudEvent('game_left', state)), 2)
    assert.equal(
      (await readNotifications(h, anna))[0]!.message,
      `Chloé a quitté la partie du ${DATE}. Il reste 2 places.`,
    )
    assert.deepEqual(await readTypes(h, bob, chloe), [['game_left'], []])
  })

  test('on game_left with a by_id other than actor_id, the service notifies the user actor_id, but not the user by_id', async () => {
    const [anna, bob, chloe] = await makeFourPlayers(h)
    const state = { game_id: newGameId(), creator_id: anna, player_ids: [anna, bob], actor_id: chloe, by_id: anna }
    assert.equal(await report(h, cloudEvent('game_left', state)), 2)
    assert.deepEqual(await readTypes(h, anna, bob, chloe), [[], ['game_left'], ['game_left']])
    assert.equal(
      (await readNotifications(h, chloe))[0]!.message,
      `Chloé a quitté la partie du ${DATE}. Il reste 2 places.`,
    )
    // A `by_id` that equals `actor_id` has no effect.
    await report(h, cloudEvent('game_left', { ...state, by_id: chloe }))
    assert.deepEqual(await readTypes(h, anna, chloe), [['game_left'], ['game_left']])
  })

  test('on game_cancelled, the service notifies the creator and the old and new players, except the actor', async () => {
    const [anna, bob, chloe, david] = await makeFourPlayers(h)
    const game_id = newGameId()
    await report(h, cloudEvent('game_created', { game_id, creator_id: david, player_ids: [anna, bob] }))
    const state = { game_id, creator_id: david, player_ids: [chloe] }
    assert.equal(await report(h, cloudEvent('game_cancelled', { ...state, actor_id: bob })), 3)
    assert.deepEqual(await readTypes(h, anna, bob, chloe, david), [
      ['game_cancelled'],
      [],
      ['game_cancelled'],
      ['game_cancelled'],
    ])
    assert.equal((await readNotifications(h, david))[0]!.message, `Bob a annulé la partie du ${DATE}.`)
    const mine = cloudEvent('game_cancelled', { ...state, game_id: newGameId(), actor_id: david })
    assert.equal(await report(h, mine), 1)
  })

  test('on game_full, the service notifies all four players', async () => {
    const all = await makeFourPlayers(h)
    const state = { game_id: newGameId(), creator_id: all[0], player_ids: all, actor_id: all[3] }
    assert.equal(await report(h, cloudEvent('game_full', state)), 4)
    for (const id of all) assert.deepEqual(await readTypes(h, id), [['game_full']])
    const [notification] = await readNotifications(h, all[0])
    assert.equal(notification!.message, `Vous êtes 4 sur 4 pour la partie du ${DATE}.`)
    assert.equal(notification!.actor_name_length, 0)
  })

  test('on game_reminder and game_started, the service notifies the players', async () => {
    const [anna, bob, chloe] = await makeFourPlayers(h)
    const state = { game_id: newGameId(), creator_id: chloe, player_ids: [anna, bob] }
    assert.equal(await report(h, cloudEvent('game_reminder', state)), 2)
    assert.equal(await report(h, cloudEvent('game_started', state)), 2)
    assert.deepEqual(
      (await readNotifications(h, anna)).map(({ message }) => message),
      [`Votre partie commence le ${DATE}.`, 'Votre partie de 18\u00a0h\u00a000 a commencé. Bon match\u202f!'],
    )
    assert.deepEqual((await readNotifications(h, bob))[1]!.data, { game_id: state.game_id, starts_at: STARTS_AT })
    assert.deepEqual(await readTypes(h, chloe), [[]])
  })

  const scores: [string, string][] = [
    ['score_submitted', 'Anna a saisi le score 6-4 6-3. Validez-le ou contestez-le.'],
    ['score_validated', 'Anna a validé le score 6-4 6-3.'],
    ['score_contested', 'Anna conteste le score 6-4 6-3.'],
  ]
  for (const [type, message] of scores) {
    test(`on ${type}, the service notifies the players except the actor`, async () => {
      const [anna, bob, chloe, david] = await makeFourPlayers(h)
      const score = { id: 9, sets: '6-4 6-3' }
      const state = { game_id: newGameId(), creator_id: bob, player_ids: [anna, chloe, david], actor_id: anna, score }
      assert.equal(await report(h, cloudEvent(type, state)), 2)
      const [notification] = await readNotifications(h, david)
      assert.deepEqual(
        { message: notification!.message, data: notification!.data },
        { message, data: { game_id: state.game_id, actor_id: anna, score_id: 9 } },
      )
      assert.deepEqual(await readTypes(h, anna, bob), [[], []])
    })
  }

  test('on score_finalized, the service notifies all players, including the actor', async () => {
    const [anna, bob] = await makeFourPlayers(h)
    const score = { sets: '6-4 6-3' }
    const state = { game_id: newGameId(), creator_id: anna, player_ids: [anna, bob], actor_id: anna, score }
    assert.equal(await report(h, cloudEvent('score_finalized', state)), 2)
    const [notification] = await readNotifications(h, anna)
    assert.equal(notification!.message, `Le score de la partie du ${DATE} est définitif\u00a0: 6-4 6-3.`)
    assert.deepEqual(notification!.data, { game_id: state.game_id, actor_id: anna })
  })

  test('on game_created and game_updated, the service saves the game but sends no notification', async () => {
    const [anna, bob] = await makeFourPlayers(h)
    const state = { game_id: newGameId(), creator_id: anna, player_ids: [anna], actor_id: anna, place: 'Court 2' }
    assert.equal(await report(h, cloudEvent('game_created', state)), 0)
    assert.equal(
      await report(h, cloudEvent('game_updated', { ...state, player_ids: [anna, bob], place: undefined })),
      0,
    )
    assert.deepEqual(await readGame(h, state.game_id), {
      creator_id: anna,
      player_ids: [anna, bob],
      starts_at: new Date('2027-01-16T17:00:00Z'),
      place: null,
      cancelled: false,
    })
  })
})

describe('the notifications of a user', () => {
  test('after a batch, the notifications of each user are in the order of the events', async () => {
    const [anna, bob, chloe, david] = await makeFourPlayers(h)
    const state = { game_id: newGameId(), creator_id: anna }
    await report(h, cloudEvent('game_created', { ...state, player_ids: [anna, bob, chloe] }))
    const joined = cloudEvent('game_joined', { ...state, player_ids: [anna, bob, chloe, david], actor_id: david })
    const left = cloudEvent('game_left', { ...state, player_ids: [anna, bob, david], actor_id: chloe })
    const headers = { 'content-type': 'application/cloudevents-batch+json' }
    const { body } = await h.call('POST', '/internal/v1/events', { token: INTAKE_KEY, body: [joined, left], headers })
    assert.deepEqual(
      body.results.map((result: { notifications: number }) => result.notifications),
      [7, 3],
    )
    assert.deepEqual(await readTypes(h, anna, david), [
      ['game_joined', 'game_full', 'game_left'],
      ['game_full', 'game_left'],
    ])
    assert.equal((await send(h, joined)).body.notifications, 7)
  })
})
