import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createTokens } from '../src/auth/jwt.ts'
import { endAll } from '../src/auth/sessions.ts'
import { anotherApp, harness } from './support/app.ts'
import { otherThan, queuedCode, readPayload, signUp } from './support/scenario.ts'

const h = harness()

function refresh(token: string) {
  return h.call('POST', '/api/v1/auth/refresh', { token })
}

async function renew(token: string): Promise<string> {
  const answer = await refresh(token)
  assert.equal(answer.status, 200, answer.text)
  return answer.body.access_token
}

async function getMeStatus(token: string): Promise<number> {
  return (await h.call('GET', '/api/v1/auth/me', { token })).status
}

const SECONDS = 1_000
const MINUTES = 60_000
const DAYS = 86_400_000

describe('the access token', () => {
  test('an access token has the claims iss, sub, iat, nbf, exp, jti and sid and no others, and is accepted for 60 minutes', async () => {
    const { token } = await signUp(h)
    const { iss, sub, iat, nbf, exp, jti, sid, ...rest } = readPayload(token)
    assert.deepEqual(rest, {})
    assert.equal(iss, 'courtside')
    assert.equal(typeof sub, 'string')
    assert.equal(nbf, iat)
    assert.equal(exp - iat, 3600)
    assert.ok(jti !== sid && jti.startsWith(sid))
    h.clock.advance(60 * MINUTES - SECONDS)
    assert.equal(await getMeStatus(token), 200)
    h.clock.advance(SECONDS)
    assert.equal(await getMeStatus(token), 401)
  })
})

describe('refresh', () => {
  test('a token that is newer than the session is refused, and does not make the present token count as stolen', async () => {
    const { token } = await signUp(h)
    const { sub, sid, iat, exp } = readPayload(token)
    const newer = createTokens(h.ctx.keys).sign({ sub: Number(sub), sid, generation: 5, iat, nbf: iat, exp })
    assert.equal((await refresh(newer)).status, 401)
    const next = await renew(token)
    h.clock.advance(31 * SECONDS)
    // Nobody has used the new token, so the client has not received it.
    assert.equal(readPayload(await renew(token)).jti, readPayload(next).jti)
  })

  test('a refresh of a valid token returns access_token, token_type and expires_in', async () => {
    const { token } = await signUp(h)
    h.clock.advance(10 * MINUTES)
    const answer = await refresh(token)
    assert.equal(answer.status, 200)
    assert.deepEqual(Object.keys(answer.body), ['access_token', 'token_type', 'expires_in'])
    assert.equal(answer.body.token_type, 'bearer')
    assert.equal(answer.body.expires_in, 3600)
    assert.equal(readPayload(answer.body.access_token).sid, readPayload(token).sid)
    assert.notEqual(readPayload(answer.body.access_token).jti, readPayload(token).jti)
  })

  test('an expired token can be refreshed until 7 days after the sign-in', async () => {
    let { token } = await signUp(h)
    h.clock.advance(6 * DAYS)
    token = await renew(token)
    h.clock.advance(DAYS - 30 * MINUTES)
    const answer = await refresh(token)
    assert.equal(answer.body.expires_in, 1800)
    h.clock.advance(30 * MINUTES)
    assert.equal((await refresh(answer.body.access_token)).status, 401)
    assert.equal(await getMeStatus(answer.body.access_token), 401)
  })

  test('SESSION_DAYS decides when a session ends, and each of its tokens is valid for 60 minutes', async t => {
    for (const days of [1, 365]) {
      const other = await anotherApp(h, { SESSION_DAYS: String(days) })
      t.after(other.close)
      let { token } = await signUp({ ...h, call: other.call })
      assert.equal(readPayload(token).exp - readPayload(token).iat, 3600)
      h.clock.advance(days * DAYS - 30 * MINUTES)
      // A process with another value accepts the session too, because the row stores its end.
      const answer = await refresh(token)
      assert.equal(answer.body.expires_in, 1800)
      token = answer.body.access_token
      h.clock.advance(30 * MINUTES)
      assert.equal((await refresh(token)).status, 401)
    }
  })

  test('after a refresh the previous token is accepted for 30 s, and then gets a 401, which does not end the session', async () => {
    const { token } = await signUp(h)
    const next = await renew(token)
    assert.equal(await getMeStatus(next), 200)
    h.clock.advance(30 * SECONDS - 1)
    assert.equal(await getMeStatus(token), 200)
    h.clock.advance(1)
    assert.equal(await getMeStatus(token), 401)
    assert.equal(await getMeStatus(next), 200)
  })

  test('the grace period of a refreshed token ends after 30 s, or earlier at the exp of this token', async () => {
    const { token } = await signUp(h)
    h.clock.advance(60 * MINUTES - 10 * SECONDS)
    await renew(token)
    h.clock.advance(9 * SECONDS)
    assert.equal(await getMeStatus(token), 200)
    h.clock.advance(SECONDS)
    assert.equal(await getMeStatus(token), 401)
  })

  test('a second refresh of a token within 30 s returns the session’s newest token, even if the newest token is two generations newer', async () => {
    const { token: first } = await signUp(h)
    const second = await renew(first)
    assert.equal(await renew(first), second)
    h.clock.advance(10 * SECONDS)
    const third = await renew(second)
    h.clock.advance(10 * SECONDS)
    assert.equal(await renew(first), third)
    assert.equal(await renew(second), third)
  })

  test('five concurrent refreshes of one token return the same token', async () => {
    const { token } = await signUp(h)
    const answers = await Promise.all(Array.from({ length: 5 }, () => renew(token)))
    assert.equal(new Set(answers).size, 1)
    assert.equal(await getMeStatus(answers[0]!), 200)
  })

  test('a token can be refreshed even after its grace period of 30 s if its successor was never presented', async () => {
    const { token } = await signUp(h)
    const lost = await renew(token)
    h.clock.advance(20 * MINUTES)
    assert.equal(await renew(token), lost)
    h.clock.advance(3 * DAYS)
    const usable = await renew(token)
    assert.notEqual(usable, lost)
    assert.equal(await getMeStatus(usable), 200)
    assert.equal((await refresh(token)).status, 401)
  })

  test('a refresh of a dead token whose successor was presented revokes the session as stolen', async () => {
    for (const present of [getMeStatus, (token: string) => renew(token)]) {
      const { token } = await signUp(h)
      const next = await renew(token)
      await present(next)
      h.clock.advance(31 * SECONDS)
      const stolen = await refresh(token)
      assert.equal(stolen.status, 401)
      assert.equal(stolen.text, '{"message":"Unauthenticated.","code":"unauthenticated"}')
      assert.equal(await getMeStatus(next), 401)
      assert.equal((await refresh(next)).status, 401)
      const [row] = await h.database.sql`select end_reason from session where id = ${readPayload(token).sid}`
      assert.equal(row!.end_reason, 'reuse')
    }
  })

  test('the grace period of a token begins when its direct successor is issued, not when a later token is issued', async () => {
    const { token: first } = await signUp(h)
    const second = await renew(first)
    h.clock.advance(20 * SECONDS)
    const third = await renew(second)
    h.clock.advance(10 * SECONDS)
    assert.equal(await getMeStatus(first), 401)
    assert.equal(await getMeStatus(second), 200)
    assert.equal((await refresh(first)).status, 401)
    assert.equal(await getMeStatus(third), 401)
  })

  test('a refresh without a token, or with a token that the service did not sign, gets 401', async () => {
    const none = await h.call('POST', '/api/v1/auth/refresh')
    assert.equal(none.status, 401)
    assert.equal(none.headers['www-authenticate'], 'Bearer')
    const unsigned = await refresh('a.b.c')
    assert.equal(unsigned.status, 401)
    assert.equal(unsigned.headers['www-authenticate'], 'Bearer error="invalid_token"')
  })

  test('a refresh ignores the body and the content type of the request', async () => {
    const { token } = await signUp(h)
    for (const type of ['text/plain', ';;;', 'application/json']) {
      const headers = { 'content-type': type }
      const answer = await h.call('POST', '/api/v1/auth/refresh', { token, body: '{not json', headers })
      assert.equal(answer.status, 200)
    }
  })
})

describe('logout', () => {
  test('a sign-out by an operator does not change the time at which a session ended before', async () => {
    const { token } = await signUp(h)
    const id = Number(readPayload(token).sub)
    await h.call('POST', '/api/v1/auth/logout', { token })
    const loggedOutAt = h.clock.now()
    h.clock.advance(10 * MINUTES)
    assert.equal(await endAll(h.database.sql, id, h.clock.now()), 1)
    const rows = await h.database.sql`select ended_at, end_reason from session where user_id = ${id}`
    assert.deepEqual(rows, [{ ended_at: loggedOutAt, end_reason: 'operator' }])
  })

  test('after a logout no token of the session is accepted, even for a refresh, and other sessions continue', async () => {
    const { token } = await signUp(h)
    const other = await signUp(h)
    const next = await renew(token)
    const answer = await h.call('POST', '/api/v1/auth/logout', { token: next })
    assert.equal(answer.status, 200)
    assert.deepEqual(answer.body, { message: 'Vous êtes déconnecté.' })
    for (const dead of [token, next]) {
      assert.equal(await getMeStatus(dead), 401)
      assert.equal((await refresh(dead)).status, 401)
    }
    assert.equal(await getMeStatus(other.token), 200)
  })
})

describe('deleting one’s account', () => {
  test('deleting an account needs a fresh code, requested with or without the token, and leaves no row of the account', async () => {
    for (const withToken of [true, false]) {
      const { email, token } = await signUp(h)
      assert.equal((await h.call('DELETE', '/api/v1/auth/me', { token, body: { code: '1234' } })).status, 422)
      h.clock.advance(MINUTES)
      await h.call('POST', '/api/v1/auth/request-otp', { body: { email }, ...(withToken && { token }) })
      const code = await queuedCode(h, email, withToken ? readPayload(token).sid : null)
      const wrong = await h.call('DELETE', '/api/v1/auth/me', { token, body: { code: otherThan(code) } })
      assert.equal(wrong.body.code, 'otp_invalid')
      const deleted = await h.call('DELETE', '/api/v1/auth/me', { token, body: { code } })
      assert.deepEqual([deleted.status, deleted.body], [200, { message: 'Votre compte est supprimé.' }])
      assert.equal(await getMeStatus(token), 401)
      assert.equal((await refresh(token)).status, 401)
      const left = await h.database.sql`
        select email from app_user where email = ${email}
        union all select email from sign_in_address where email = ${email}`
      assert.deepEqual(left, [])
    }
  })

  test('at its own code, a known client has all five attempts to delete the account', async () => {
    const { email, token } = await signUp(h)
    h.clock.advance(MINUTES)
    await h.call('POST', '/api/v1/auth/request-otp', { body: { email }, token })
    const code = await queuedCode(h, email, readPayload(token).sid)
    const remove = (typed: string) => h.call('DELETE', '/api/v1/auth/me', { token, body: { code: typed } })
    for (let attempt = 0; attempt < 4; attempt += 1) assert.equal((await remove(otherThan(code))).status, 422)
    assert.equal((await remove(code)).status, 200)
  })
})
