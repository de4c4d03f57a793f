import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { harness } from './support/app.ts'
import { newEmail, otherThan, payloadOf, profile, queuedCode, signIn, signUp } from './support/scenario.ts'

const h = harness()

function ask(body: unknown, token?: string) {
  return h.call('POST', '/api/v1/auth/request-otp', { body, ...(token && { token }) })
}

function verify(email: unknown, code: unknown, options: { token?: string; headers?: Record<string, string> } = {}) {
  return h.call('POST', '/api/v1/auth/verify-otp', { body: { email, code }, ...options })
}

describe('200', () => {
  test('a sign-up: exactly access_token and is_new_user, and the account with its terms', async () => {
    const email = newEmail()
    await ask(profile(email))
    const answer = await verify(email, await queuedCode(h, email))
    assert.equal(answer.status, 200)
    assert.deepEqual(Object.keys(answer.body), ['access_token', 'is_new_user'])
    assert.equal(answer.body.is_new_user, true)
    const [user] = await h.database.sql`
      select first_name, last_name, locale, terms_version, terms_accepted_at = created_at as at_once from app_user
      where email = ${email}`
    assert.deepEqual(user, {
      first_name: 'Marie',
      last_name: 'Durand',
      locale: 'fr',
      terms_version: '1',
      at_once: true,
    })
  })

  test('a sign-in: is_new_user is false, under any spelling of the address', async () => {
    const { email } = await signUp(h)
    h.clock.advance(60_000)
    await ask({ email: email.toUpperCase() })
    const answer = await verify(` ${email.toUpperCase()}\t`, await queuedCode(h, email))
    assert.equal(answer.body.is_new_user, false)
  })

  test('the profile kept is that of the request whose code was used', async () => {
    const email = newEmail()
    await ask(profile(email))
    h.clock.advance(60_000)
    await ask({ ...profile(email), first_name: 'Paul' })
    await verify(email, await queuedCode(h, email))
    const [user] = await h.database.sql`select first_name from app_user where email = ${email}`
    assert.equal(user!.first_name, 'Paul')
  })

  test('the fifth attempt may succeed', async () => {
    const email = newEmail()
    await ask(profile(email))
    const code = await queuedCode(h, email)
    for (let guess = 0; guess < 4; guess += 1) assert.equal((await verify(email, otherThan(code))).status, 422)
    assert.equal((await verify(email, code)).status, 200)
  })

  const languages: [string | undefined, string][] = [
    [undefined, 'fr'],
    ['*', 'fr'],
    ['de', 'fr'],
    ['en', 'en'],
    ['en-GB,en;q=0.9,fr;q=0.8', 'en'],
    ['fr;q=0.5, en;q=0.4', 'fr'],
    ['de, en;q=0.7, fr;q=0.2', 'en'],
    ['fr, en', 'fr'],
    ['en, fr', 'en'],
  ]
  for (const [header, locale] of languages) {
    test(`Accept-Language ${header} sets the locale ${locale}`, async () => {
      const { email } = await signUp(h)
      h.clock.advance(60_000)
      await ask({ email })
      const headers: Record<string, string> = header === undefined ? {} : { 'accept-language': header }
      const { body } = await verify(email, await queuedCode(h, email), { headers })
      const me = await h.call('GET', '/api/v1/auth/me', { token: body.access_token })
      assert.equal(me.body.data.locale, locale)
    })
  }

  test('a right code still works at its last moment, and not after 15 minutes', async () => {
    const email = newEmail()
    await ask(profile(email))
    const code = await queuedCode(h, email)
    h.clock.advance(15 * 60_000 - 1)
    assert.equal((await verify(email, code)).status, 200)
    const { email: other } = await signUp(h)
    h.clock.advance(60_000)
    await ask({ email: other })
    const late = await queuedCode(h, other)
    h.clock.advance(15 * 60_000)
    assert.equal((await verify(other, late)).body.code, 'otp_invalid')
  })
})

describe('422 otp_invalid: one and the same answer', () => {
  const expected = {
    message: 'Ce code est incorrect ou a expiré.',
    code: 'otp_invalid',
    errors: { code: ['Ce code est incorrect ou a expiré.'] },
  }

  test('wrong, exhausted, used, superseded, unknown address, decoy', async () => {
    const email = newEmail()
    await ask(profile(email))
    const code = await queuedCode(h, email)
    for (let guess = 0; guess < 5; guess += 1) assert.deepEqual((await verify(email, otherThan(code))).body, expected)
    assert.deepEqual((await verify(email, code)).body, expected)

    h.clock.advance(60_000)
    await ask({ email })
    const fresh = await queuedCode(h, email)
    assert.equal((await verify(email, fresh)).status, 200)
    assert.deepEqual((await verify(email, fresh)).body, expected)

    assert.deepEqual((await verify(newEmail(), '1234')).body, expected)
    const unknown = newEmail()
    await ask({ email: unknown })
    assert.deepEqual((await verify(unknown, await queuedCode(h, unknown))).body, expected)
  })
})

describe('422 validation_failed costs no attempt', () => {
  const codes: [string, unknown][] = [
    ['a number', 1234],
    ['three digits', '123'],
    ['five digits', '12345'],
    ['a space', ' 123'],
    ['spaces around', ' 1234 '],
    ['letters', '12a4'],
    ['Arabic digits', '١٢٣٤'],
    ['a line break', '1234\n'],
    ['null', null],
    ['a list', ['1234']],
  ]
  for (const [name, code] of codes) {
    test(name, async () => {
      const email = newEmail()
      await ask(profile(email))
      for (let time = 0; time < 6; time += 1) {
        const answer = await verify(email, code)
        assert.equal(answer.status, 422)
        assert.equal(answer.body.code, 'validation_failed')
        assert.deepEqual(Object.keys(answer.body.errors), ['code'])
      }
      const [row] = await h.database.sql<{ attempts: number }>`select attempts from sign_in_code where email = ${email}`
      assert.equal(row!.attempts, 0)
    })
  }
})

describe('the lane of a known client', () => {
  test('a stranger who burns every guess does not lock the person out', async () => {
    const { email, token } = await signUp(h)
    for (let round = 0; round < 12; round += 1) {
      h.clock.advance(4 * 3_600_000)
      await ask({ email })
      const wrong = otherThan(await queuedCode(h, email))
      for (let guess = 0; guess < 5; guess += 1) await verify(email, wrong)
    }
    h.clock.advance(60_000)
    assert.equal((await ask({ email })).status, 429)
    assert.equal((await ask({ email }, token)).status, 200)
    const code = await queuedCode(h, email, payloadOf(token).sid)
    const stranger = await verify(email, code)
    assert.equal(stranger.status, 422)
    assert.equal((await verify(email, code, { token })).status, 200)
  })

  test('a stranger who asks each minute takes every turn, and locks nobody out', async () => {
    const { email, token } = await signUp(h)
    for (let minute = 0; minute < 3; minute += 1) {
      h.clock.advance(60_000)
      await ask({ email })
      assert.equal((await ask({ email }, token)).status, 429)
    }
    const mailed = await queuedCode(h, email)
    assert.equal((await verify(email, mailed, { token })).status, 200)
    // Its own code comes first while there is one, and the stranger's five guesses don't reach it.
    h.clock.advance(60_000)
    await ask({ email }, token)
    const own = await queuedCode(h, email, payloadOf(token).sid)
    h.clock.advance(60_000)
    await ask({ email })
    const open = await queuedCode(h, email)
    for (let guess = 0; guess < 5; guess += 1) await verify(email, otherThan(open))
    assert.equal((await verify(email, own, { token })).status, 200)
  })

  test('its code lives beside everybody’s; the 60 s hold over all lanes', async () => {
    const { email, token } = await signUp(h)
    h.clock.advance(60_000)
    await ask({ email })
    assert.equal((await ask({ email }, token)).status, 429)
    const open = await queuedCode(h, email)
    h.clock.advance(60_000)
    assert.equal((await ask({ email }, token)).status, 200)
    assert.equal(await queuedCode(h, email), open)
    assert.equal((await verify(email, open)).status, 200)
  })

  test('an expired token and one of a logged-out session keep their lane, for 90 days', async () => {
    const { email, token } = await signUp(h)
    await h.call('POST', '/api/v1/auth/logout', { token })
    h.clock.advance(89 * 86_400_000)
    await ask({ email }, token)
    assert.match(await queuedCode(h, email, payloadOf(token).sid), /^\d{4}$/)
    h.clock.advance(86_400_000)
    await ask({ email }, token)
    assert.match(await queuedCode(h, email, null), /^\d{4}$/)
  })

  test('a revoked session, another account’s and an unusable token are ignored', async () => {
    const { email, token } = await signUp(h)
    const stranger = await signUp(h)
    const { sid } = payloadOf(token)
    await h.database.sql`update session set ended_at = now(), end_reason = 'reuse' where id = ${sid}`
    for (const bad of [token, stranger.token, 'not.a.token']) {
      h.clock.advance(60_000)
      assert.equal((await ask({ email }, bad)).status, 200)
      const lanes = await h.database.sql`select session_id from sign_in_code where email = ${email}`
      assert.deepEqual(lanes, [{ session_id: null }])
    }
  })
})

test('each sign-in is a session of its own', async () => {
  const first = await signUp(h)
  const second = await signIn(h, first.email)
  assert.notEqual(payloadOf(first.token).sid, payloadOf(second.token).sid)
  for (const { token } of [first, second]) assert.equal((await h.call('GET', '/api/v1/auth/me', { token })).status, 200)
})
