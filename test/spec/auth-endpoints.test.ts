// This file has one test for each row of the table in the specification's chapter "Endpoints", and for each sentence of
// this chapter about accounts and levels. The throttle has its default limits. Before each test, the clock moves
// forward by one minute, so the throttle does not count the requests of earlier tests.
import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { harness } from '../support/app.ts'
import { assertError, ENDPOINTS } from '../support/endpoints.ts'
import { makeNotifications, makeUser } from '../support/factories.ts'
import { newEmail, otherThan, profile, queuedCode, readPayload, signUp } from '../support/scenario.ts'

const h = harness({ THROTTLE_REQUEST_OTP: '', THROTTLE_VERIFY_OTP: '' })
beforeEach(() => h.clock.advance(60_000))

const requestCode = (body: unknown) => h.call('POST', '/api/v1/auth/request-otp', { body })
const verify = (body: unknown) => h.call('POST', '/api/v1/auth/verify-otp', { body })
const me = (token: string) => h.call('GET', '/api/v1/auth/me', { token })
const SENT = { message: 'Si cette adresse peut se connecter, un code vient de lui être envoyé.' }

describe('Endpoints', () => {
  for (const [method, path, auth] of ENDPOINTS) {
    test(`"${method} | ${path} | ${auth}"`, async () => {
      const { id, token } = await makeUser(h)
      const [notification] = await makeNotifications(h, id, 1)
      const url = path.replace('{id}', String(notification))
      const anonymous = await h.call(method, url)
      if (auth === 'no') assert.notEqual(anonymous.status, 401)
      else assert.deepEqual([anonymous.status, anonymous.body.message], [401, 'Unauthenticated.'])
      // The guard accepts a request with a token. The request has no body, so an endpoint that needs a body answers
      // 422.
      const needsBody = ['request-otp', 'verify-otp', 'level-assessment'].some(name => url.endsWith(name))
      assert.equal((await h.call(method, url, { token })).status, needsBody ? 422 : 200)
    })
  }

  describe('POST /auth/request-otp', () => {
    test('"Sign-up body: email, first_name, last_name, accept_cgu (true)."', async () => {
      const email = newEmail()
      const body = { email, first_name: 'Marie', last_name: 'Durand', accept_cgu: true }
      assert.equal((await requestCode(body)).status, 200)
      assertError(await requestCode({ ...body, accept_cgu: false }), 422, 'validation_failed', 'accept_cgu')
      const { access_token } = (await verify({ email, code: await queuedCode(h, email) })).body
      const { first_name, last_name } = (await me(access_token)).body.data
      assert.deepEqual([first_name, last_name], ['Marie', 'Durand'])
    })

    test('"Sign-in body: email only."', async () => {
      const { email } = await makeUser(h)
      assert.equal((await requestCode({ email })).status, 200)
      const verified = await verify({ email, code: await queuedCode(h, email) })
      assert.deepEqual([verified.status, verified.body.is_new_user], [200, false])
    })

    test('"Success: 200 with an object holding `message` (string)."', async () => {
      const answer = await requestCode(profile(newEmail()))
      assert.deepEqual([answer.status, answer.body], [200, SENT])
    })

    test('"A code of 4 digits is emailed and stored for 15 minutes."', async () => {
      const email = newEmail()
      await requestCode(profile(email))
      assert.match(await queuedCode(h, email), /^[0-9]{4}$/)
      const [{ minutes }] = (await h.database.sql`
        select extract(epoch from expires_at - sent_at)::int / 60 as minutes from sign_in_code where email = ${email}`) as [
        { minutes: number },
      ]
      assert.equal(minutes, 15)
    })

    test('"Sign-in with an e-mail address that has no account still returns 200 (the existence of accounts is not revealed)."', async () => {
      const { email } = await makeUser(h)
      const known = await requestCode({ email })
      h.clock.advance(60_000)
      const unknown = await requestCode({ email: newEmail() })
      const visible = ({ status, headers: { 'x-request-id': _, date: __, ...headers }, text }: typeof known) => ({
        status,
        headers,
        text,
      })
      assert.deepEqual([unknown.status, unknown.body], [200, SENT])
      assert.deepEqual(visible(unknown), visible(known))
    })

    test('"Sign-up with an e-mail address that already has an account returns 422."', async () => {
      const { email } = await makeUser(h)
      assertError(await requestCode(profile(email)), 422, 'validation_failed', 'email')
    })

    test('"Throttled to 5 requests per minute (429 beyond)."', async () => {
      for (let request = 1; request <= 5; request += 1)
        assert.equal((await requestCode({ email: newEmail() })).status, 200)
      assertError(await requestCode({ email: newEmail() }), 429, 'throttled')
      h.clock.advance(60_000)
      assert.equal((await requestCode({ email: newEmail() })).status, 200)
    })
  })

  describe('POST /auth/verify-otp', () => {
    test('"Success: 200 with access_token and is_new_user (see Token result)."', async () => {
      const email = newEmail()
      await requestCode(profile(email))
      // The body of a request to verify-otp has the members `email` and `code`.
      const answer = await verify({ email, code: await queuedCode(h, email) })
      assert.equal(answer.status, 200)
      assert.deepEqual(Object.keys(answer.body), ['access_token', 'is_new_user'])
    })

    test('"Invalid or expired code or invalid body: 422 (validation failure)."', async () => {
      const email = newEmail()
      await requestCode(profile(email))
      const code = await queuedCode(h, email)
      assertError(await verify({ email, code: otherThan(code) }), 422, 'otp_invalid', 'code')
      assertError(await verify({ email, code: 'abcd' }), 422, 'validation_failed', 'code')
      assertError(await verify({}), 422, 'validation_failed', 'email', 'code')
      assertError(await verify('{'), 422, 'validation_failed', 'body')
      h.clock.advance(15 * 60_000)
      assertError(await verify({ email, code }), 422, 'otp_invalid', 'code')
    })

    test('"Throttled to 10 requests per minute (429 beyond)."', async () => {
      const guess = () => verify({ email: newEmail(), code: '0000' })
      for (let request = 1; request <= 10; request += 1) assert.equal((await guess()).status, 422)
      assertError(await guess(), 429, 'throttled')
      h.clock.advance(60_000)
      assert.equal((await guess()).status, 422)
    })
  })

  describe('POST /auth/refresh', () => {
    test('"Requires a Bearer token; no body. Returns a renewed JWT in `access_token`"', async () => {
      const { token } = await signUp(h)
      assertError(await h.call('POST', '/api/v1/auth/refresh'), 401, 'unauthenticated')
      h.clock.advance(1_000)
      const answer = await h.call('POST', '/api/v1/auth/refresh', { token })
      assert.equal(answer.status, 200)
      assert.equal(readPayload(answer.body.access_token).exp, readPayload(token).exp + 1)
      assert.equal((await me(answer.body.access_token)).status, 200)
    })
  })

  describe('POST /auth/logout', () => {
    test('"Requires a Bearer token. Invalidates the JWT."', async () => {
      const { token } = await signUp(h)
      assertError(await h.call('POST', '/api/v1/auth/logout'), 401, 'unauthenticated')
      assert.equal((await h.call('POST', '/api/v1/auth/logout', { token })).status, 200)
      assertError(await me(token), 401, 'unauthenticated')
    })

    test('open question: "Response body": a logout is answered with `{message}`', async () => {
      const { token } = await signUp(h)
      const answer = await h.call('POST', '/api/v1/auth/logout', { token })
      assert.deepEqual(answer.body, { message: 'Vous êtes déconnecté.' })
    })
  })

  describe('GET /auth/me', () => {
    test('"Requires a Bearer token. Returns the signed-in user."', async () => {
      const [marie, paul] = [await makeUser(h), await makeUser(h)]
      assertError(await h.call('GET', '/api/v1/auth/me'), 401, 'unauthenticated')
      for (const { id, email, token } of [marie, paul]) {
        const answer = await me(token)
        assert.deepEqual([answer.status, answer.body.data.id, answer.body.data.email], [200, id, email])
      }
    })
  })

  describe('POST /auth/level-assessment', () => {
    test('"Requires a Bearer token. Body: game_level_id. Success: 200 with the user including the chosen level."', async () => {
      const { id, token } = await makeUser(h)
      const level = (await h.call('GET', '/api/v1/game-levels')).body.data[3]
      const body = { game_level_id: level.id }
      assertError(await h.call('POST', '/api/v1/auth/level-assessment', { body }), 401, 'unauthenticated')
      const answer = await h.call('POST', '/api/v1/auth/level-assessment', { token, body })
      assert.deepEqual([answer.status, answer.body.data.id, answer.body.data.game_level], [200, id, level])
    })
  })

  describe('GET /game-levels', () => {
    test('"No authentication. Returns 200 with a list of game levels"', async () => {
      const answer = await h.call('GET', '/api/v1/game-levels')
      assert.equal(answer.status, 200)
      assert.equal(answer.body.data.length, 8)
      for (const level of answer.body.data) assert.ok(Number.isInteger(level.id))
    })
  })
})
