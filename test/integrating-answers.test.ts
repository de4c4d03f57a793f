import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { describe, test } from 'node:test'
import { harness, JWT_SECRET } from './support/app.ts'
import { makeUser } from './support/factories.ts'
import { cloudEvent, makePlayer, newGameId, readTypes, report, sendBatch } from './support/games.ts'
import { queuedCode, readPayload, signUp } from './support/scenario.ts'

const h = harness()

describe('answers of docs/integrating.md', () => {
  test('an empty batch has no effect, and gets a 401 with a wrong key', async () => {
    assert.deepEqual((await sendBatch(h, [])).body, { results: [] })
    assert.equal((await sendBatch(h, [], { authorization: 'Bearer wrong' })).status, 401)
  })

  test('a program with JWT_SECRET as UTF-8 can check the signature of a token, whose claims are as documented', async () => {
    const { token } = await signUp(h)
    const [header, payload, signature] = token.split('.')
    const expected = createHmac('sha256', Buffer.from(JWT_SECRET, 'utf8')).update(`${header}.${payload}`)
    assert.equal(signature, expected.digest('base64url'))
    assert.equal(JSON.parse(Buffer.from(header!, 'base64url').toString()).alg, 'HS256')
    const { iss, sub, iat, nbf, exp, jti, sid, ...others } = readPayload(token)
    const { body } = await h.call('GET', '/api/v1/auth/me', { token })
    assert.deepEqual([iss, sub, nbf, exp - iat, jti], ['courtside', String(body.data.id), iat, 3600, `${sid}.1`])
    assert.deepEqual(others, {})
  })

  test('the tokens of a user get a 401 as soon as the user has deleted the account', async () => {
    const { email, token } = await makeUser(h)
    const getMe = async () => (await h.call('GET', '/api/v1/auth/me', { token })).status
    assert.equal(await getMe(), 200)
    await h.call('POST', '/api/v1/auth/request-otp', { token, body: { email } })
    const code = await queuedCode(h, email, readPayload(token).sid)
    assert.equal((await h.call('DELETE', '/api/v1/auth/me', { token, body: { code } })).status, 200)
    assert.equal(await getMe(), 401)
  })

  test('updated_at of a user changes with the level, and no endpoint shows a user to anyone else', async () => {
    const { id, token } = await makeUser(h)
    const getMe = async () => (await h.call('GET', '/api/v1/auth/me', { token })).body.data
    const before = await getMe()
    h.clock.advance(60_000)
    await h.call('POST', '/api/v1/auth/level-assessment', { token, body: { game_level_id: 2 } })
    assert.ok((await getMe()).updated_at > before.updated_at)
    for (const path of ['users', `users/${id}`, `auth/users/${id}`]) {
      assert.equal((await h.call('GET', `/api/v1/${path}`, { token })).status, 404)
    }
  })

  test('game_created with the creator among the players needs no game_joined, and causes no notification', async () => {
    const [anna, bob] = [await makePlayer(h), await makePlayer(h)]
    const game = { game_id: newGameId(), creator_id: anna }
    assert.equal(await report(h, cloudEvent('game_created', { ...game, player_ids: [anna] })), 0)
    assert.equal(await report(h, cloudEvent('game_joined', { ...game, player_ids: [anna, bob], actor_id: bob })), 1)
    assert.deepEqual(await readTypes(h, anna, bob), [['game_joined'], []])
  })

  test('a game of two players is never announced as full, and its text says that two of four players are there', async () => {
    const [anna, bob] = [await makePlayer(h), await makePlayer(h)]
    const game = { game_id: newGameId(), creator_id: anna, player_ids: [anna, bob] }
    await report(h, cloudEvent('game_joined', { ...game, actor_id: bob }))
    const [row] = await h.database.sql<{ message: string }>`select message from notification where user_id = ${anna}`
    assert.match(row!.message, /\(2\/4\)/)
    assert.deepEqual(await readTypes(h, anna), [['game_joined']])
  })

  test('a game_joined of a past game creates notifications, and a game_updated creates none', async () => {
    const [anna, bob] = [await makePlayer(h), await makePlayer(h)]
    const starts_at = new Date(h.clock.now().getTime() - 3_600_000).toISOString()
    const game = { game_id: newGameId(), creator_id: anna, player_ids: [anna, bob], starts_at }
    assert.equal(await report(h, cloudEvent('game_joined', { ...game, actor_id: bob })), 1)
    assert.equal(await report(h, cloudEvent('game_updated', { ...game, player_ids: [anna], actor_id: bob })), 0)
  })

  test('events with two sources and the same game_id are about one game', async () => {
    const [anna, bob, carla] = [await makePlayer(h), await makePlayer(h), await makePlayer(h)]
    const game = { game_id: newGameId(), creator_id: anna }
    await report(h, cloudEvent('game_created', { ...game, player_ids: [anna, bob] }, { source: '/production' }))
    const cancelled = { ...game, creator_id: carla, player_ids: [], actor_id: carla }
    await report(h, cloudEvent('game_cancelled', cancelled, { source: '/test' }))
    assert.deepEqual(await readTypes(h, anna, bob), [['game_cancelled'], ['game_cancelled']])
  })
})
