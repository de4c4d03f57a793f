// This file has one test for each sentence of the specification's introduction and of its chapter "What the service
// does". The file also tests the inputs and outputs in the chapter "Resources and their fields". All titles quote the
// specification.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { harness } from '../support/app.ts'
import { assertError, ENDPOINTS } from '../support/endpoints.ts'
import { makeNotifications, makeUser } from '../support/factories.ts'
import { cloudEvent, newGameId, report } from '../support/games.ts'
import { newEmail, profile, queuedCode, readPayload, signIn, signUp } from '../support/scenario.ts'

const h = harness()

const requestCode = (body: unknown) => h.call('POST', '/api/v1/auth/request-otp', { body })
const verifyCode = (body: unknown) => h.call('POST', '/api/v1/auth/verify-otp', { body })

describe('Passwordless Authentication, Game Levels and In-App Notifications API', () => {
  test('"All paths below are relative to {base_url} and carry the prefix `/api/v1`."', async () => {
    const { id, token } = await makeUser(h)
    const [read] = await makeNotifications(h, id, 1)
    for (const [method, path] of ENDPOINTS) {
      const url = path.replace('{id}', String(read))
      assert.equal((await h.call(method, url.slice('/api/v1'.length), { token })).status, 404, path)
      assert.notEqual((await h.call(method, url)).status, 404, path)
    }
  })

  test('"Bodies are JSON."', async () => {
    for (const [method, path] of ENDPOINTS) {
      const answer = await h.call(method, path.replace('{id}', '1'))
      assert.equal(answer.headers['content-type'], 'application/json; charset=utf-8', path)
    }
    const form = { body: `email=${newEmail()}`, headers: { 'content-type': 'application/x-www-form-urlencoded' } }
    assertError(await h.call('POST', '/api/v1/auth/request-otp', form), 415, 'unsupported_media_type')
  })
})

describe('What the service does', () => {
  test('"Users sign up and sign in without a password."', async () => {
    const { email } = await signUp(h)
    const { token } = await signIn(h, email)
    assert.equal((await h.call('GET', '/api/v1/auth/me', { token })).body.data.email, email)
  })

  test('"the user returns it and receives a JWT access token."', async () => {
    const email = newEmail()
    await requestCode(profile(email))
    const code = await queuedCode(h, email)
    assert.match(code, /^[0-9]{4}$/)
    const { access_token } = (await verifyCode({ email, code })).body
    assert.match(access_token, /^[\w-]+\.[\w-]+\.[\w-]+$/)
  })

  test('"A new user then picks a game level from a public list and submits it as a self-assessment."', async () => {
    const { token } = await signUp(h)
    assert.equal((await h.call('GET', '/api/v1/auth/me', { token })).body.data.game_level, null)
    const [, level] = (await h.call('GET', '/api/v1/game-levels')).body.data
    const answer = await h.call('POST', '/api/v1/auth/level-assessment', { token, body: { game_level_id: level.id } })
    assert.equal(answer.status, 200)
    assert.deepEqual((await h.call('GET', '/api/v1/auth/me', { token })).body.data.game_level, level)
  })

  test('"The service keeps in-app notifications per user about games"', async () => {
    const [creator, player] = [await makeUser(h), await makeUser(h)]
    await report(
      h,
      cloudEvent('game_joined', {
        game_id: newGameId(),
        creator_id: creator.id,
        player_ids: [creator.id, player.id],
        actor_id: player.id,
      }),
    )
    const list = async (token: string) => (await h.call('GET', '/api/v1/notifications', { token })).body.data
    assert.deepEqual(
      (await list(creator.token)).map((one: { type: string }) => one.type),
      ['game_joined'],
    )
    assert.deepEqual(await list(player.token), [])
  })

  test('"A user can list, count, mark as read, mark all as read, and delete their own notifications."', async () => {
    const { id, token } = await makeUser(h)
    const [first, second, third] = await makeNotifications(h, id, 3)
    const readInbox = async () => {
      const { data } = (await h.call('GET', '/api/v1/notifications', { token })).body
      const { unread_count } = (await h.call('GET', '/api/v1/notifications/unread-count', { token })).body
      return [data.map((one: { id: number }) => one.id), unread_count]
    }
    assert.deepEqual(await readInbox(), [[third, second, first], 3])
    assert.equal((await h.call('POST', `/api/v1/notifications/${first}/read`, { token })).status, 200)
    assert.deepEqual(await readInbox(), [[third, second, first], 2])
    assert.equal((await h.call('POST', '/api/v1/notifications/read-all', { token })).status, 200)
    assert.deepEqual(await readInbox(), [[third, second, first], 0])
    assert.equal((await h.call('DELETE', `/api/v1/notifications/${second}`, { token })).status, 200)
    assert.deepEqual(await readInbox(), [[third, first], 0])
  })
})

describe('Resources and their fields', () => {
  describe('Credentials request (input of request-otp)', () => {
    test('"email | string (e-mail address) | yes | identifies the account"', async () => {
      assertError(await requestCode({}), 422, 'validation_failed', 'email')
      for (const email of ['no address', 17, null])
        assertError(await requestCode({ email }), 422, 'validation_failed', 'email')
      const [one, other] = [await signUp(h), await signUp(h)]
      const readUserId = async (token: string) => (await h.call('GET', '/api/v1/auth/me', { token })).body.data.id
      assert.equal(await readUserId((await signIn(h, one.email)).token), await readUserId(one.token))
      assert.notEqual(await readUserId(one.token), await readUserId(other.token))
    })

    for (const [field, row, wrong] of [
      ['first_name', 'first_name | string | sign-up only | ', 17],
      ['last_name', 'last_name | string | sign-up only | ', 17],
      ['accept_cgu', 'accept_cgu | boolean | sign-up only | sent as true when the user accepts the terms', 'true'],
    ] as const) {
      test(`"${row.trim()}"`, async () => {
        const { [field]: _, ...without } = profile(newEmail())
        assertError(await requestCode(without), 422, 'validation_failed', field)
        assertError(await requestCode({ ...without, [field]: wrong }), 422, 'validation_failed', field)
        assert.equal((await requestCode({ email: newEmail() })).status, 200)
        assert.equal((await requestCode(profile(newEmail()))).status, 200)
      })
    }
  })

  describe('OTP verification (input of verify-otp)', () => {
    test('"email | string | yes |"', async () => {
      assertError(await verifyCode({ code: '0000' }), 422, 'validation_failed', 'email')
      assertError(await verifyCode({ email: 17, code: '0000' }), 422, 'validation_failed', 'email')
    })

    test('"code | string of 4 digits | yes |"', async () => {
      const email = newEmail()
      for (const code of [undefined, 1234, '123', '12345', '12a4', ' 1234', '１２３４']) {
        assertError(await verifyCode({ email, code }), 422, 'validation_failed', 'code')
      }
      assertError(await verifyCode({ email, code: '1234' }), 422, 'otp_invalid', 'code')
    })
  })

  describe('Token result (output of verify-otp)', () => {
    test('"access_token | string (JWT) | sent as a Bearer token afterwards"', async () => {
      const { token } = await signUp(h)
      assert.equal(readPayload(token).iss, 'courtside')
      const headers = { authorization: `Bearer ${token}` }
      assert.equal((await h.call('GET', '/api/v1/auth/me', { headers })).status, 200)
    })

    test('"is_new_user | boolean | true after a sign-up, false after a sign-in"', async () => {
      const email = newEmail()
      await requestCode(profile(email))
      const first = await verifyCode({ email, code: await queuedCode(h, email) })
      assert.deepEqual(first.body, { access_token: first.body.access_token, is_new_user: true })
      h.clock.advance(60_000)
      await requestCode({ email })
      const second = await verifyCode({ email, code: await queuedCode(h, email) })
      assert.deepEqual(second.body, { access_token: second.body.access_token, is_new_user: false })
    })
  })

  describe('Level assessment (input of level-assessment)', () => {
    test('"game_level_id | integer (identifier of a game level) | yes"', async () => {
      const { token } = await makeUser(h)
      const assess = (body: unknown) => h.call('POST', '/api/v1/auth/level-assessment', { token, body })
      for (const body of [{}, { game_level_id: '1' }, { game_level_id: 1.5 }, { game_level_id: 9999 }]) {
        assertError(await assess(body), 422, 'validation_failed', 'game_level_id')
      }
      const [level] = (await h.call('GET', '/api/v1/game-levels')).body.data
      assert.equal((await assess({ game_level_id: level.id })).status, 200)
    })
  })
})
