import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { harness } from './support/app.ts'
import { newEmail, profile, queuedCode, signUp } from './support/scenario.ts'

const h = harness()
const url = '/api/v1/auth/request-otp'

function requestCode(body: unknown, options: { token?: string; headers?: Record<string, string> } = {}) {
  return h.call('POST', url, { body, ...options })
}

async function findPurpose(email: string): Promise<string | undefined> {
  const [row] = await h.database.sql<{ purpose: string }>`select purpose from sign_in_code where email = ${email}`
  return row?.purpose
}

describe('200', () => {
  test('code requests for a sign-up, for a sign-in and for an unknown address get the same answer', async () => {
    const { email } = await signUp(h)
    h.clock.advance(60_000)
    const answers = [
      await requestCode(profile(newEmail())),
      await requestCode({ email }),
      await requestCode({ email: newEmail() }),
    ]
    for (const answer of answers) {
      assert.equal(answer.status, 200)
      assert.deepEqual(Object.keys(answer.body), ['message'])
      assert.equal(answer.text, answers[0]!.text)
      assert.deepEqual(Object.keys(answer.headers), Object.keys(answers[0]!.headers))
    }
  })

  test('the header Retry-After states the wait until the next code, for known and unknown addresses alike', async () => {
    const { email } = await signUp(h)
    h.clock.advance(60_000)
    for (const body of [profile(newEmail()), { email }, { email: newEmail() }]) {
      const sent = await requestCode(body)
      assert.deepEqual([sent.status, sent.headers['retry-after']], [200, '60'])
      const repeated = await requestCode(body)
      assert.deepEqual([repeated.status, repeated.headers['retry-after']], [429, sent.headers['retry-after']])
    }
  })

  test('for an unknown address the service stores a decoy row and a decoy job, and no account', async () => {
    const email = newEmail()
    await requestCode({ email })
    assert.equal(await findPurpose(email), 'decoy')
    assert.match(await queuedCode(h, email), /^\d{4}$/)
    const users = await h.database.sql`select id from app_user where email = ${email}`
    assert.equal(users.length, 0)
  })

  test('the mail is in the language of Accept-Language, and without this header in the language of the account', async () => {
    const headers: [Record<string, string>, string | null][] = [
      [{ 'accept-language': 'en' }, 'en'],
      [{ 'accept-language': '*' }, 'fr'],
      [{ 'accept-language': '' }, null],
      [{}, null],
    ]
    for (const [header, language] of headers) {
      const email = newEmail()
      const { body } = await requestCode({ email }, { headers: header })
      assert.match(body.message, language === 'en' ? /^If / : /^Si /)
      const [mail] = await h.database.sql<{ language: string | null }>`
        select payload ->> 'language' as language
        from outbox join sign_in_code on sign_in_code.id = code_id where email = ${email}`
      assert.equal(mail!.language, language)
    }
  })

  test('an unverified sign-up creates no account and does not reserve the address', async () => {
    const email = newEmail()
    await requestCode(profile(email))
    h.clock.advance(60_000)
    assert.equal((await requestCode({ ...profile(email), first_name: 'Paul' })).status, 200)
    assert.equal((await h.database.sql`select id from app_user where email = ${email}`).length, 0)
  })

  test('a request with only the address of a pending sign-up sends another code and keeps the profile', async () => {
    const email = newEmail()
    await requestCode(profile(email))
    const first = await queuedCode(h, email)
    h.clock.advance(10 * 60_000)
    assert.equal((await requestCode({ email })).status, 200)
    assert.equal(await findPurpose(email), 'sign_up')
    const code = await queuedCode(h, email)
    const old = await h.call('POST', '/api/v1/auth/verify-otp', { body: { email, code: first } })
    assert.equal(old.status, first === code ? 200 : 422)
    const verified = await h.call('POST', '/api/v1/auth/verify-otp', { body: { email, code } })
    if (first !== code) assert.equal(verified.body.is_new_user, true)
  })

  test('a pending sign-up can be resumed until an hour after its last code', async () => {
    const email = newEmail()
    await requestCode(profile(email))
    h.clock.advance(3_599_999)
    await requestCode({ email })
    assert.equal(await findPurpose(email), 'sign_up')
    h.clock.advance(3_600_000)
    await requestCode({ email })
    assert.equal(await findPurpose(email), 'decoy')
  })

  test('a sign-in request that sends no mail does not delay a sign-up, but a sign-up delays the next request', async () => {
    const email = newEmail()
    await requestCode({ email })
    assert.equal((await requestCode(profile(email))).status, 200)
    assert.equal(await findPurpose(email), 'sign_up')
    assert.equal((await requestCode(profile(email))).status, 429)
    assert.equal((await requestCode({ email })).status, 429)
    assert.equal(await findPurpose(email), 'sign_up')
  })

  test('the code is stored as a hash and queued in encrypted form, never in clear text', async () => {
    const email = newEmail()
    await requestCode(profile(email))
    const code = await queuedCode(h, email)
    const [row] = await h.database.sql<{ text: string }>`
      select sign_in_code::text || coalesce(outbox::text, '') as text
      from sign_in_code left join outbox on code_id = sign_in_code.id
      where email = ${email}`
    assert.equal(row!.text.includes(`"${code}"`), false)
    assert.equal(row!.text.includes(Buffer.from(code).toString('base64url')), false)
    assert.equal(row!.text.includes(Buffer.from(code).toString('hex')), false)
  })

  const spellings: [string, string][] = [
    ['  MARIE.Durand@Example.COM\t', 'marie.durand@example.com'],
    ['a+b@exemple.fr', 'a+b@exemple.fr'],
    ['jean@café.example', 'jean@xn--caf-dma.example'],
    ['jean@CAFÉ.example', 'jean@xn--caf-dma.example'],
  ]
  for (const [input, stored] of spellings) {
    test(`the address ${JSON.stringify(input)} is stored as ${stored}`, async () => {
      h.clock.advance(60_000)
      assert.equal((await requestCode(profile(input))).status, 200)
      assert.equal(await findPurpose(stored), 'sign_up')
    })
  }
})

describe('422', () => {
  const invalidBodies: [string, unknown, string[]][] = [
    ['no fields', {}, ['email']],
    ['a null address, which counts as absent,', { email: null }, ['email']],
    ['a blank address, which counts as absent,', { email: ' \t ' }, ['email']],
    ['a number as the address', { email: 7 }, ['email']],
    ['a quoted local part', { email: '"a b"@example.com' }, ['email']],
    ['a line break in the address', { email: 'a@example.com\nb@example.com' }, ['email']],
    ['a line break at the end of the address', { email: 'a@example.com\n' }, ['email']],
    ['two addresses', { email: 'a@example.com,b@example.com' }, ['email']],
    ['a domain without a dot', { email: 'a@localhost' }, ['email']],
    ['an IP address as the domain', { email: 'a@127.0.0.1' }, ['email']],
    ['the Kelvin sign in the address', { email: 'mar\u212Ae@example.com' }, ['email']],
    ['a full-width @ in the address', { email: 'a\uFF20example.com' }, ['email']],
    ['an address of 255 characters', { email: `a@${'b.'.repeat(125)}com` }, ['email']],
    ['a local part of 65 characters', { email: `${'a'.repeat(65)}@example.com` }, ['email']],
    [
      'accept_cgu: false, which makes the request a sign-up,',
      { email: 'a@example.com', accept_cgu: false },
      ['first_name', 'last_name', 'accept_cgu'],
    ],
    ['accept_cgu as a string', { ...profile('a@example.com'), accept_cgu: 'true' }, ['accept_cgu']],
    ['names but no accept_cgu', { email: 'a@example.com', first_name: 'A', last_name: 'B' }, ['accept_cgu']],
    ['a name of 101 characters', { ...profile('a@example.com'), first_name: 'é'.repeat(101) }, ['first_name']],
    ['a line break in a name', { ...profile('a@example.com'), last_name: 'A\r\nBcc: x' }, ['last_name']],
    ['a NUL in a name', { ...profile('a@example.com'), last_name: 'A\0' }, ['last_name']],
    ['a lone surrogate in a name', { ...profile('a@example.com'), first_name: '\uD800' }, ['first_name']],
  ]
  for (const [name, body, fields] of invalidBodies) {
    test(`a body with ${name} gets a 422 that names ${fields.join(', ')}`, async () => {
      const answer = await requestCode(body)
      assert.equal(answer.status, 422, answer.text)
      assert.equal(answer.body.code, 'validation_failed')
      assert.deepEqual(Object.keys(answer.body.errors), fields)
    })
  }

  test('a sign-up with a registered address gets a 422 that names the field email', async () => {
    const { email } = await signUp(h)
    h.clock.advance(60_000)
    const answer = await requestCode(profile(email))
    assert.equal(answer.status, 422)
    assert.deepEqual(answer.body.errors, { email: ['Cette adresse e-mail a déjà un compte.'] })
    assert.equal(answer.body.message, 'Cette adresse e-mail a déjà un compte.')
  })

  test('a sign-up with a registered address gets a 422 even during the cooldown', async () => {
    const { email } = await signUp(h)
    h.clock.advance(60_000)
    await requestCode({ email })
    assert.equal((await requestCode(profile(email))).status, 422)
  })

  test('the message of a 422 is in English if the caller prefers English, and states the number of further errors', async () => {
    const answer = await requestCode({ accept_cgu: false }, { headers: { 'accept-language': 'en-GB, fr;q=0.5' } })
    assert.equal(answer.body.message, 'The email field is required.')
    const more = await requestCode({ email: 'x', first_name: 'A' })
    assert.equal(more.body.message, 'L’adresse e-mail n’est pas valide. (et 2 erreur(s) de plus)')
  })
})

describe('429 wait', () => {
  test('a second request within 60 s gets 429 for known and unknown addresses, and no code is sent or replaced', async () => {
    const { email } = await signUp(h)
    h.clock.advance(60_000)
    for (const body of [{ email }, { email: newEmail() }]) {
      assert.equal((await requestCode(body)).status, 200)
      const code = await queuedCode(h, body.email)
      h.clock.advance(18_500)
      const answer = await requestCode(body)
      assert.equal(answer.status, 429)
      assert.equal(answer.body.code, 'wait')
      assert.equal(answer.headers['retry-after'], '42')
      assert.equal(await queuedCode(h, body.email), code)
      h.clock.advance(41_500)
      assert.equal((await requestCode(body)).status, 200)
    }
  })
})

describe('413, 415', () => {
  test('a body with a media type other than JSON gets 415', async () => {
    const answer = await h.call('POST', url, { body: 'email=a', headers: { 'content-type': 'text/plain' } })
    assert.equal(answer.status, 415)
    assert.equal(answer.body.code, 'unsupported_media_type')
  })

  test('a body of more than 64 KiB gets 413 before its media type is checked', async () => {
    const answer = await h.call('POST', url, { body: 'x'.repeat(65_537), headers: { 'content-type': 'text/plain' } })
    assert.equal(answer.status, 413)
    assert.equal(answer.body.code, 'payload_too_large')
  })

  test('a media type with a parameter and capital letters is accepted', async () => {
    const answer = await h.call('POST', url, {
      body: { email: newEmail() },
      headers: { 'content-type': 'Application/JSON; charset=utf-8' },
    })
    assert.equal(answer.status, 200)
  })
})
