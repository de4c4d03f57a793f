import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { harness } from './support/app.ts'
import { newEmail, otherThan, profile, queuedCode, readPayload, signIn, signUp } from './support/scenario.ts'

const h = harness()

function requestCode(body: unknown, token?: string) {
  return h.call('POST', '/api/v1/auth/request-otp', { body, ...(token && { token }) })
}

function verify(email: unknown, code: unknown, options: { token?: string; headers?: Record<string, string> } = {}) {
  return h.call('POST', '/api/v1/auth/verify-otp', { body: { email, code }, ...options })
}

describe('200', () => {
  test('a sign-up returns only access_token and is_new_user, and creates the account with the accepted terms', async () => {
    const email = newEmail()
    await requestCode(profile(email))
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

  test('a sign-in returns is_new_user: false for any spelling of the address', async () => {
    const { email } = await signUp(h)
    h.clock.advance(60_000)
    await requestCode({ email: email.toUpperCase() })
    const answer = await verify(` ${email.toUpperCase()}\t`, await queuedCode(h, email))
    assert.equal(answer.body.is_new_user, false)
  })

  test('a new account gets the profile of the request whose code was used', async () => {
    const email = newEmail()
    await requestCode(profile(email))
    h.clock.advance(60_000)
    await requestCode({ ...profile(email), first_name: 'Paul' })
    await verify(email, await queuedCode(h, email))
    const [user] = await h.database.sql`select first_name from app_user where email = ${email}`
    assert.equal(user!.first_name, 'Paul')
  })

  test('the right code is accepted at the fifth attempt', async () => {
    const email = newEmail()
    await requestCode(profile(email))
    const code = await queuedCode(h, email)
    for (let guess = 0; guess < 4; guess += 1) assert.equal((await verify(email, otherThan(code))).status, 422)
    assert.equal((await verify(email, code)).status, 200)
  })

  test('without Accept-Language a sign-in keeps the locale of the account, and a sign-up sets fr', async () => {
    const { email, token } = await signUp(h)
    const readLocale = async (bearer: string) =>
      (await h.call('GET', '/api/v1/auth/me', { token: bearer })).body.data.locale
    assert.equal(await readLocale(token), 'fr')
    const headers: Record<string, string>[] = [{ 'accept-language': 'en' }, {}, { 'accept-language': '' }]
    for (const header of headers) {
      h.clock.advance(60_000)
      await requestCode({ email })
      const { body } = await verify(email, await queuedCode(h, email), { headers: header })
      assert.equal(await readLocale(body.access_token), 'en')
    }
  })

  const languages: [string, string][] = [
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
    test(`a sign-in with Accept-Language ${header} sets the locale ${locale}`, async () => {
      const { email } = await signUp(h)
      h.clock.advance(60_000)
      await requestCode({ email })
      const headers = { 'accept-language': header }
      const { body } = await verify(email, await queuedCode(h, email), { headers })
      const me = await h.call('GET', '/api/v1/auth/me', { token: body.access_token })
      assert.equal(me.body.data.locale, locale)
    })
  }

  test('the right code is accepted until 15 minutes have passed, and not afterwards', async () => {
    const email = newEmail()
    await requestCode(profile(email))
    const code = await queuedCode(h, email)
    h.clock.advance(15 * 60_000 - 1)
    assert.equal((await verify(email, code)).status, 200)
    const { email: other } = await signUp(h)
    h.clock.advance(60_000)
    await requestCode({ email: other })
    const late = await queuedCode(h, other)
    h.clock.advance(15 * 60_000)
    assert.equal((await verify(other, late)).body.code, 'otp_invalid')
  })
})

describe('422 otp_invalid', () => {
  const expected = {
    message: 'Ce code est incorrect ou a expiré. Demandez un nouveau code.',
    code: 'otp_invalid',
    errors: { code: ['Ce code est incorrect ou a expiré. Demandez un nouveau code.'] },
  }

  test('verify-otp gives the same answer to a wrong, exhausted or used code, to a decoy code and to an unknown address', async () => {
    const email = newEmail()
    await requestCode(profile(email))
    const code = await queuedCode(h, email)
    for (let guess = 0; guess < 5; guess += 1) assert.deepEqual((await verify(email, otherThan(code))).body, expected)
    assert.deepEqual((await verify(email, code)).body, expected)

    h.clock.advance(60_000)
    await requestCode({ email })
    const fresh = await queuedCode(h, email)
    assert.equal((await verify(email, fresh)).status, 200)
    assert.deepEqual((await verify(email, fresh)).body, expected)

    assert.deepEqual((await verify(newEmail(), '1234')).body, expected)
    const unknown = newEmail()
    await requestCode({ email: unknown })
    assert.deepEqual((await verify(unknown, await queuedCode(h, unknown))).body, expected)
  })
})

describe('422 validation_failed', () => {
  const invalidCodes: [string, unknown][] = [
    ['a number', 1234],
    ['three digits', '123'],
    ['five digits', '12345'],
    ['three digits after a space', ' 123'],
    ['four digits between spaces', ' 1234 '],
    ['three digits and a letter', '12a4'],
    ['four Arabic digits', '١٢٣٤'],
    ['four digits and a line break', '1234\n'],
    ['null', null],
    ['a list', ['1234']],
  ]
  for (const [name, code] of invalidCodes) {
    test(`a code that is ${name} is refused with 422 and does not count as an attempt`, async () => {
      const email = newEmail()
      await requestCode(profile(email))
      for (let attempt = 0; attempt < 6; attempt += 1) {
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

test('a second sign-in opens a second session, and the first session continues', async () => {
  const first = await signUp(h)
  const second = await signIn(h, first.email)
  assert.notEqual(readPayload(first.token).sid, readPayload(second.token).sid)
  for (const { token } of [first, second]) assert.equal((await h.call('GET', '/api/v1/auth/me', { token })).status, 200)
})
