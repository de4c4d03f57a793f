import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { harness } from './support/app.ts'
import { newEmail, otherThan, profile, queuedCode, signUp } from './support/scenario.ts'

const h = harness()
const url = '/api/v1/auth/request-otp'

function ask(body: unknown, options: { token?: string; headers?: Record<string, string> } = {}) {
  return h.call('POST', url, { body, ...options })
}

async function purposeOf(email: string): Promise<string | undefined> {
  const [row] = await h.database.sql<{ purpose: string }>`select purpose from sign_in_code where email = ${email}`
  return row?.purpose
}

describe('200', () => {
  test('a sign-up, a sign-in and an unknown address get the same answer', async () => {
    const { email } = await signUp(h)
    h.clock.advance(60_000)
    const answers = [await ask(profile(newEmail())), await ask({ email }), await ask({ email: newEmail() })]
    for (const answer of answers) {
      assert.equal(answer.status, 200)
      assert.deepEqual(Object.keys(answer.body), ['message'])
      assert.equal(answer.text, answers[0]!.text)
      assert.deepEqual(Object.keys(answer.headers), Object.keys(answers[0]!.headers))
    }
  })

  test('an unknown address gets a decoy row and a decoy job, no account', async () => {
    const email = newEmail()
    await ask({ email })
    assert.equal(await purposeOf(email), 'decoy')
    assert.match(await queuedCode(h, email), /^\d{4}$/)
    const users = await h.database.sql`select id from app_user where email = ${email}`
    assert.equal(users.length, 0)
  })

  test('an unverified sign-up makes no account and reserves nothing', async () => {
    const email = newEmail()
    await ask(profile(email))
    h.clock.advance(60_000)
    assert.equal((await ask({ ...profile(email), first_name: 'Paul' })).status, 200)
    assert.equal((await h.database.sql`select id from app_user where email = ${email}`).length, 0)
  })

  test('the address alone resends the code of a pending sign-up, profile kept', async () => {
    const email = newEmail()
    await ask(profile(email))
    const first = await queuedCode(h, email)
    h.clock.advance(60_000)
    assert.equal((await ask({ email })).status, 200)
    assert.equal(await purposeOf(email), 'sign_up')
    const code = await queuedCode(h, email)
    const stale = await h.call('POST', '/api/v1/auth/verify-otp', { body: { email, code: first } })
    assert.equal(stale.status, first === code ? 200 : 422)
    const verified = await h.call('POST', '/api/v1/auth/verify-otp', { body: { email, code } })
    if (first !== code) assert.equal(verified.body.is_new_user, true)
  })

  test('a pending sign-up whose code has expired can still be resumed for a day', async () => {
    const email = newEmail()
    await ask(profile(email))
    h.clock.advance(23 * 3_600_000)
    await ask({ email })
    assert.equal(await purposeOf(email), 'sign_up')
    h.clock.advance(25 * 3_600_000)
    await ask({ email })
    assert.equal(await purposeOf(email), 'decoy')
  })

  test('a sign-up right after a sign-in that sent no mail need not wait; the next one must', async () => {
    const email = newEmail()
    await ask({ email })
    assert.equal((await ask(profile(email))).status, 200)
    assert.equal(await purposeOf(email), 'sign_up')
    assert.equal((await ask(profile(email))).status, 429)
    assert.equal((await ask({ email })).status, 429)
    assert.equal(await purposeOf(email), 'sign_up')
  })

  test('the code is stored as a hash and queued sealed, never in clear', async () => {
    const email = newEmail()
    await ask(profile(email))
    const code = await queuedCode(h, email)
    const [row] = await h.database.sql<{ text: string }>`
      select sign_in_code::text || coalesce(_private_jobs::text, '') as text
      from sign_in_code left join graphile_worker._private_jobs on payload ->> 'code_id' = sign_in_code.id::text
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
  for (const [written, stored] of spellings) {
    test(`${JSON.stringify(written)} is the address ${stored}`, async () => {
      h.clock.advance(60_000)
      assert.equal((await ask(profile(written))).status, 200)
      assert.equal(await purposeOf(stored), 'sign_up')
    })
  }
})

describe('422', () => {
  const refused: [string, unknown, string[]][] = [
    ['no body', {}, ['email']],
    ['null counts as absent', { email: null }, ['email']],
    ['blank counts as absent', { email: ' \t ' }, ['email']],
    ['not a string', { email: 7 }, ['email']],
    ['quoted local part', { email: '"a b"@example.com' }, ['email']],
    ['line break inside', { email: 'a@example.com\nb@example.com' }, ['email']],
    ['line break at the end', { email: 'a@example.com\n' }, ['email']],
    ['two addresses', { email: 'a@example.com,b@example.com' }, ['email']],
    ['no dot in the domain', { email: 'a@localhost' }, ['email']],
    ['an IP address', { email: 'a@127.0.0.1' }, ['email']],
    ['the Kelvin sign', { email: 'mar\u212Ae@example.com' }, ['email']],
    ['a full-width @', { email: 'a\uFF20example.com' }, ['email']],
    ['255 characters', { email: `a@${'b.'.repeat(125)}com` }, ['email']],
    ['a local part of 65 characters', { email: `${'a'.repeat(65)}@example.com` }, ['email']],
    [
      'accept_cgu false is present',
      { email: 'a@example.com', accept_cgu: false },
      ['first_name', 'last_name', 'accept_cgu'],
    ],
    ['accept_cgu as text', { ...profile('a@example.com'), accept_cgu: 'true' }, ['accept_cgu']],
    ['accept_cgu missing', { email: 'a@example.com', first_name: 'A', last_name: 'B' }, ['accept_cgu']],
    ['a name of 101 characters', { ...profile('a@example.com'), first_name: 'é'.repeat(101) }, ['first_name']],
    ['a line break in a name', { ...profile('a@example.com'), last_name: 'A\r\nBcc: x' }, ['last_name']],
    ['NUL in a name', { ...profile('a@example.com'), last_name: 'A\0' }, ['last_name']],
    ['a lone surrogate', { ...profile('a@example.com'), first_name: '\uD800' }, ['first_name']],
  ]
  for (const [name, body, fields] of refused) {
    test(name, async () => {
      const answer = await ask(body)
      assert.equal(answer.status, 422, answer.text)
      assert.equal(answer.body.code, 'validation_failed')
      assert.deepEqual(Object.keys(answer.body.errors), fields)
    })
  }

  test('a sign-up with a registered address', async () => {
    const { email } = await signUp(h)
    h.clock.advance(60_000)
    const answer = await ask(profile(email))
    assert.equal(answer.status, 422)
    assert.deepEqual(answer.body.errors, { email: ['Cette adresse e-mail a déjà un compte.'] })
    assert.equal(answer.body.message, 'Cette adresse e-mail a déjà un compte.')
  })

  test('a registered address is told before the wait', async () => {
    const { email } = await signUp(h)
    h.clock.advance(60_000)
    await ask({ email })
    assert.equal((await ask(profile(email))).status, 422)
  })

  test('in English for those who prefer it, with the number of further errors', async () => {
    const answer = await ask({ accept_cgu: false }, { headers: { 'accept-language': 'en-GB, fr;q=0.5' } })
    assert.equal(answer.body.message, 'The email field is required.')
    const more = await ask({ email: 'x', first_name: 'A' })
    assert.equal(more.body.message, 'L’adresse e-mail n’est pas valide. (et 2 erreur(s) de plus)')
  })
})

describe('429 wait', () => {
  test('60 s between sends to one address, known or not; nothing is sent or replaced', async () => {
    const { email } = await signUp(h)
    h.clock.advance(60_000)
    for (const body of [{ email }, { email: newEmail() }]) {
      assert.equal((await ask(body)).status, 200)
      const code = await queuedCode(h, body.email)
      h.clock.advance(18_500)
      const answer = await ask(body)
      assert.equal(answer.status, 429)
      assert.equal(answer.body.code, 'wait')
      assert.equal(answer.headers['retry-after'], '42')
      assert.equal(await queuedCode(h, body.email), code)
      h.clock.advance(41_500)
      assert.equal((await ask(body)).status, 200)
    }
  })

  test('from the tenth wrong guess on, every further five double the wait, up to four hours', async () => {
    const { email } = await signUp(h)
    const waits: number[] = []
    for (let round = 0; round < 14; round += 1) {
      // As long as the longest wait, so that each round gets its code.
      h.clock.advance(4 * 3_600_000)
      assert.equal((await ask({ email })).status, 200)
      const wrong = otherThan(await queuedCode(h, email))
      for (let guess = 0; guess < 5; guess += 1) {
        await h.call('POST', '/api/v1/auth/verify-otp', { body: { email, code: wrong } })
      }
      waits.push(Number((await ask({ email })).headers['retry-after']))
    }
    assert.deepEqual(waits, [60, 60, 120, 240, 480, 960, 1920, 3840, 7680, 14_400, 14_400, 14_400, 14_400, 14_400])
  })

  test('a success forgets the wrong guesses', async () => {
    const { email } = await signUp(h)
    for (let round = 0; round < 3; round += 1) {
      h.clock.advance(3_600_000)
      await ask({ email })
      const wrong = otherThan(await queuedCode(h, email))
      for (let guess = 0; guess < 4; guess += 1) {
        await h.call('POST', '/api/v1/auth/verify-otp', { body: { email, code: wrong } })
      }
    }
    const code = await queuedCode(h, email)
    assert.equal((await h.call('POST', '/api/v1/auth/verify-otp', { body: { email, code } })).status, 200)
    h.clock.advance(60_000)
    assert.equal((await ask({ email })).status, 200)
  })
})

describe('413, 415', () => {
  test('another media type', async () => {
    const answer = await h.call('POST', url, { body: 'email=a', headers: { 'content-type': 'text/plain' } })
    assert.equal(answer.status, 415)
    assert.equal(answer.body.code, 'unsupported_media_type')
  })

  test('the size comes before the media type', async () => {
    const answer = await h.call('POST', url, { body: 'x'.repeat(65_537), headers: { 'content-type': 'text/plain' } })
    assert.equal(answer.status, 413)
    assert.equal(answer.body.code, 'payload_too_large')
  })

  test('parameters of the media type are allowed', async () => {
    const answer = await h.call('POST', url, {
      body: { email: newEmail() },
      headers: { 'content-type': 'Application/JSON; charset=utf-8' },
    })
    assert.equal(answer.status, 200)
  })
})
