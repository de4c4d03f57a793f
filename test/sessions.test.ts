import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { harness } from './support/app.ts'
import { otherThan, payloadOf, queuedCode, signUp } from './support/scenario.ts'

const h = harness()

function refresh(token: string) {
  return h.call('POST', '/api/v1/auth/refresh', { token })
}

async function renewed(token: string): Promise<string> {
  const answer = await refresh(token)
  assert.equal(answer.status, 200, answer.text)
  return answer.body.access_token
}

async function meStatus(token: string): Promise<number> {
  return (await h.call('GET', '/api/v1/auth/me', { token })).status
}

const SECONDS = 1_000
const MINUTES = 60_000
const DAYS = 86_400_000

describe('the access token', () => {
  test('says iss, sub, iat, nbf, exp, jti, sid and lives 60 minutes', async () => {
    const { token } = await signUp(h)
    const { iss, sub, iat, nbf, exp, jti, sid, ...rest } = payloadOf(token)
    assert.deepEqual(rest, {})
    assert.equal(iss, 'courtside')
    assert.equal(typeof sub, 'string')
    assert.equal(nbf, iat)
    assert.equal(exp - iat, 3600)
    assert.ok(jti !== sid && jti.startsWith(sid))
    h.clock.advance(60 * MINUTES - SECONDS)
    assert.equal(await meStatus(token), 200)
    h.clock.advance(SECONDS)
    assert.equal(await meStatus(token), 401)
  })
})

describe('refresh', () => {
  test('renews a valid token: access_token, token_type and expires_in', async () => {
    const { token } = await signUp(h)
    h.clock.advance(10 * MINUTES)
    const answer = await refresh(token)
    assert.equal(answer.status, 200)
    assert.deepEqual(Object.keys(answer.body), ['access_token', 'token_type', 'expires_in'])
    assert.equal(answer.body.token_type, 'bearer')
    assert.equal(answer.body.expires_in, 3600)
    assert.equal(payloadOf(answer.body.access_token).sid, payloadOf(token).sid)
    assert.notEqual(payloadOf(answer.body.access_token).jti, payloadOf(token).jti)
  })

  test('renews an expired token until 7 days from the sign-in', async () => {
    let { token } = await signUp(h)
    h.clock.advance(6 * DAYS)
    token = await renewed(token)
    h.clock.advance(DAYS - 30 * MINUTES)
    const answer = await refresh(token)
    assert.equal(answer.body.expires_in, 1800)
    h.clock.advance(30 * MINUTES)
    assert.equal((await refresh(answer.body.access_token)).status, 401)
    assert.equal(await meStatus(answer.body.access_token), 401)
  })

  test('the previous token serves other calls for 30 s, then is a plain 401 that revokes nothing', async () => {
    const { token } = await signUp(h)
    const next = await renewed(token)
    assert.equal(await meStatus(next), 200)
    h.clock.advance(30 * SECONDS - 1)
    assert.equal(await meStatus(token), 200)
    h.clock.advance(1)
    assert.equal(await meStatus(token), 401)
    assert.equal(await meStatus(next), 200)
  })

  test('the 30 s never outlive the token’s own exp', async () => {
    const { token } = await signUp(h)
    h.clock.advance(60 * MINUTES - 10 * SECONDS)
    await renewed(token)
    h.clock.advance(9 * SECONDS)
    assert.equal(await meStatus(token), 200)
    h.clock.advance(SECONDS)
    assert.equal(await meStatus(token), 401)
  })

  test('again within 30 s: the chain’s newest token, even when that is two further', async () => {
    const { token: first } = await signUp(h)
    const second = await renewed(first)
    assert.equal(await renewed(first), second)
    h.clock.advance(10 * SECONDS)
    const third = await renewed(second)
    h.clock.advance(10 * SECONDS)
    assert.equal(await renewed(first), third)
    assert.equal(await renewed(second), third)
  })

  test('five at once all get one and the same token', async () => {
    const { token } = await signUp(h)
    const answers = await Promise.all(Array.from({ length: 5 }, () => renewed(token)))
    assert.equal(new Set(answers).size, 1)
    assert.equal(await meStatus(answers[0]!), 200)
  })

  test('an answer lost in a tunnel: as long as its successor was never shown, the old token gets the newest', async () => {
    const { token } = await signUp(h)
    const lost = await renewed(token)
    h.clock.advance(20 * MINUTES)
    assert.equal(await renewed(token), lost)
    h.clock.advance(3 * DAYS)
    const usable = await renewed(token)
    assert.notEqual(usable, lost)
    assert.equal(await meStatus(usable), 200)
    assert.equal((await refresh(token)).status, 401)
  })

  test('a dead token, its successor shown and 30 s past, is taken for theft: the session is revoked', async () => {
    for (const show of [meStatus, (token: string) => renewed(token)]) {
      const { token } = await signUp(h)
      const next = await renewed(token)
      await show(next)
      h.clock.advance(31 * SECONDS)
      const stolen = await refresh(token)
      assert.equal(stolen.status, 401)
      assert.equal(stolen.text, '{"message":"Unauthenticated.","code":"unauthenticated"}')
      assert.equal(await meStatus(next), 401)
      assert.equal((await refresh(next)).status, 401)
      const [row] = await h.database.sql`select end_reason from session where id = ${payloadOf(token).sid}`
      assert.equal(row!.end_reason, 'reuse')
    }
  })

  test('30 s count from the moment of one’s own successor, not of the newest', async () => {
    const { token: first } = await signUp(h)
    const second = await renewed(first)
    h.clock.advance(20 * SECONDS)
    const third = await renewed(second)
    h.clock.advance(10 * SECONDS)
    assert.equal(await meStatus(first), 401)
    assert.equal(await meStatus(second), 200)
    assert.equal((await refresh(first)).status, 401)
    assert.equal(await meStatus(third), 401)
  })

  test('no token, or none of ours: 401', async () => {
    const none = await h.call('POST', '/api/v1/auth/refresh')
    assert.equal(none.status, 401)
    assert.equal(none.headers['www-authenticate'], 'Bearer')
    const rubbish = await refresh('a.b.c')
    assert.equal(rubbish.status, 401)
    assert.equal(rubbish.headers['www-authenticate'], 'Bearer error="invalid_token"')
  })

  test('body and content type are ignored', async () => {
    const { token } = await signUp(h)
    for (const type of ['text/plain', ';;;', 'application/json']) {
      const headers = { 'content-type': type }
      const answer = await h.call('POST', '/api/v1/auth/refresh', { token, body: '{not json', headers })
      assert.equal(answer.status, 200)
    }
  })
})

describe('logout', () => {
  test('ends the session and all its tokens, refresh included, and no other session', async () => {
    const { token } = await signUp(h)
    const other = await signUp(h)
    const next = await renewed(token)
    const answer = await h.call('POST', '/api/v1/auth/logout', { token: next })
    assert.equal(answer.status, 200)
    assert.deepEqual(answer.body, { message: 'Vous êtes déconnecté.' })
    for (const dead of [token, next]) {
      assert.equal(await meStatus(dead), 401)
      assert.equal((await refresh(dead)).status, 401)
    }
    assert.equal(await meStatus(other.token), 200)
  })
})

describe('deleting one’s account', () => {
  test('needs a fresh code, asked for with or without the token; then nothing is left', async () => {
    for (const withToken of [true, false]) {
      const { email, token } = await signUp(h)
      assert.equal((await h.call('DELETE', '/api/v1/auth/me', { token, body: { code: '1234' } })).status, 422)
      h.clock.advance(MINUTES)
      await h.call('POST', '/api/v1/auth/request-otp', { body: { email }, ...(withToken && { token }) })
      const code = await queuedCode(h, email, withToken ? payloadOf(token).sid : null)
      const wrong = await h.call('DELETE', '/api/v1/auth/me', { token, body: { code: otherThan(code) } })
      assert.equal(wrong.body.code, 'otp_invalid')
      const gone = await h.call('DELETE', '/api/v1/auth/me', { token, body: { code } })
      assert.deepEqual([gone.status, gone.body], [200, { message: 'Votre compte est supprimé.' }])
      assert.equal(await meStatus(token), 401)
      assert.equal((await refresh(token)).status, 401)
      const left = await h.database.sql`
        select email from app_user where email = ${email} union all select email from sign_in_address where email = ${email}`
      assert.deepEqual(left, [])
    }
  })
})
