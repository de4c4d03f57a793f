import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { harness } from './support/app.ts'
import { newEmail, otherThan, profile, queuedCode, readPayload, signUp } from './support/scenario.ts'

// The number of rounds of each race. Each race has many rounds, because a fault may show in only a few of them.
const ROUNDS = 200

const h = harness()

function requestCode(body: unknown) {
  return h.call('POST', '/api/v1/auth/request-otp', { body })
}

function verify(email: string, code: string) {
  return h.call('POST', '/api/v1/auth/verify-otp', { body: { email, code } })
}

async function requestNewCode(): Promise<{ email: string; code: string }> {
  const email = newEmail()
  await requestCode(profile(email))
  return { email, code: await queuedCode(h, email) }
}

function countByStatus(statuses: number[]): Record<number, number> {
  const counts: Record<number, number> = {}
  for (const status of statuses) counts[status] = (counts[status] ?? 0) + 1
  return counts
}

async function repeatRace(race: () => Promise<void>): Promise<void> {
  for (let round = 0; round < ROUNDS; round += 1) await race()
}

describe('races over a code', () => {
  test('if five concurrent requests contain the right code, the service accepts exactly one of them', () =>
    repeatRace(async () => {
      const { email, code } = await requestNewCode()
      const answers = await Promise.all(Array.from({ length: 5 }, () => verify(email, code)))
      assert.deepEqual(countByStatus(answers.map(answer => answer.status)), { 200: 1, 422: 4 })
      const sessions = await h.database.sql`
        select session.id from session join app_user on app_user.id = user_id where email = ${email}`
      assert.equal(sessions.length, 1)
    }))

  test('a request with the right code succeeds, although four wrong guesses arrive at the same time', () =>
    repeatRace(async () => {
      const { email, code } = await requestNewCode()
      const wrong = otherThan(code)
      const answers = await Promise.all([wrong, wrong, code, wrong, wrong].map(guess => verify(email, guess)))
      assert.deepEqual(
        answers.map(answer => answer.status),
        [422, 422, 200, 422, 422],
      )
    }))

  test('if eight wrong guesses arrive concurrently, the service counts exactly five attempts', () =>
    repeatRace(async () => {
      const { email, code } = await requestNewCode()
      await Promise.all(Array.from({ length: 8 }, () => verify(email, otherThan(code))))
      const [row] = await h.database.sql`select attempts from sign_in_code where email = ${email}`
      assert.deepEqual(row, { attempts: 5 })
      assert.equal((await verify(email, code)).status, 422)
    }))

  test('if a user requests a new code during wrong guesses, the service then accepts only the new code', () =>
    repeatRace(async () => {
      const { email, code: old } = await requestNewCode()
      h.clock.advance(10 * 60_000)
      await Promise.all([verify(email, otherThan(old)), requestCode({ email }), verify(email, otherThan(old))])
      const fresh = await queuedCode(h, email)
      if (fresh !== old) assert.equal((await verify(email, old)).status, 422)
      assert.equal((await verify(email, fresh)).status, 200)
    }))

  test('if a user sends the right code while requesting a new code, the service accepts one of the two codes', () =>
    repeatRace(async () => {
      const { email, code } = await requestNewCode()
      h.clock.advance(10 * 60_000)
      const [verified, resent] = await Promise.all([verify(email, code), requestCode({ email })])
      assert.equal(resent.status, 200)
      assert.ok([200, 422].includes(verified.status))
      if (verified.status === 422) assert.equal((await verify(email, await queuedCode(h, email))).status, 200)
      const users = await h.database.sql`select id from app_user where email = ${email}`
      assert.equal(users.length, 1)
    }))

  test('after four concurrent requests for a code to one address, the service mails at most one code', () =>
    repeatRace(async () => {
      const email = newEmail()
      const bodies = [profile(email), { email }, profile(email), { email }]
      const answers = await Promise.all(bodies.map(requestCode))
      const sent = answers.filter(answer => answer.status === 200)
      // The service answers a sign-in request for an unknown address with 200, but sends no mail. After this answer, a
      // sign-up request for the same address may get 200 too.
      assert.ok(
        sent.length === 1 || sent.length === 2,
        JSON.stringify(countByStatus(answers.map(answer => answer.status))),
      )
      const [row] = await h.database.sql`select purpose from sign_in_code where email = ${email}`
      assert.ok(sent.length === 1 || row!.purpose === 'sign_up')
      for (const answer of answers.filter(({ status }) => status !== 200)) {
        assert.deepEqual([answer.body.code, answer.headers['retry-after']], ['wait', '60'])
      }
    }))
})

describe('races over a session', () => {
  test('five concurrent refreshes of one token all return the same new token', () =>
    repeatRace(async () => {
      const { token } = await signUp(h)
      const answers = await Promise.all(
        Array.from({ length: 5 }, () => h.call('POST', '/api/v1/auth/refresh', { token })),
      )
      assert.deepEqual(countByStatus(answers.map(answer => answer.status)), { 200: 5 })
      assert.equal(new Set(answers.map(answer => answer.body.access_token)).size, 1)
    }))

  test('if a logout and a refresh are concurrent, the service refuses the newest token afterwards', () =>
    repeatRace(async () => {
      const { token } = await signUp(h)
      const [loggedOut, refreshed] = await Promise.all([
        h.call('POST', '/api/v1/auth/logout', { token }),
        h.call('POST', '/api/v1/auth/refresh', { token }),
      ])
      assert.equal(loggedOut.status, 200)
      const newest = refreshed.body.access_token ?? token
      assert.equal((await h.call('GET', '/api/v1/auth/me', { token: newest })).status, 401)
    }))

  test('if a deletion and a sign-in use the same code concurrently, exactly one of them succeeds', async () => {
    for (let round = 0; round < 50; round += 1) {
      const { email, token } = await signUp(h)
      h.clock.advance(60_000)
      await requestCode({ email })
      const code = await queuedCode(h, email)
      const [deleted, verified] = await Promise.all([
        h.call('DELETE', '/api/v1/auth/me', { token, body: { code } }),
        verify(email, code),
      ])
      assert.equal([deleted.status, verified.status].filter(status => status === 200).length, 1)
      const isAlive = verified.status === 200
      assert.equal((await h.call('GET', '/api/v1/auth/me', { token })).status, isAlive ? 200 : 401)
      if (!isAlive) {
        const orphans = await h.database.sql`select id from session where id = ${readPayload(token).sid}`
        assert.deepEqual(orphans, [])
      }
    }
  })
})
