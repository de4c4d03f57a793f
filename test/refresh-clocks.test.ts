import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type AnotherApp, anotherApp, harness } from './support/app.ts'
import { makeUser } from './support/factories.ts'
import { getMeStatus, refresh, renew } from './support/refreshes.ts'
import { newEmail, profile, queuedCode } from './support/scenario.ts'

const h = harness()

const SECONDS = 1_000
const MINUTES = 60_000

describe('two processes, one of which has a clock that is 45 s ahead', () => {
  const ahead = {} as AnotherApp
  before(async () => {
    Object.assign(ahead, await anotherApp(h, {}, { now: () => new Date(Date.now() + 45 * SECONDS) }))
  })
  after(() => ahead.close())

  test('a token that one process issues at a sign-in or a refresh is accepted and refreshed by the other process', async () => {
    const email = newEmail()
    await ahead.call('POST', '/api/v1/auth/request-otp', { body: profile(email) })
    const body = { email, code: await queuedCode(h, email) }
    let token = (await ahead.call('POST', '/api/v1/auth/verify-otp', { body })).body.access_token
    assert.equal(await getMeStatus(h, token), 200)
    for (const [issuer, other] of [
      [h, ahead],
      [ahead, h],
      [ahead, h],
      [h, ahead],
    ] as const) {
      token = await renew(issuer, token)
      for (const app of [other, issuer]) assert.equal(await getMeStatus(app, token), 200)
      token = await renew(other, token)
      for (const app of [issuer, other]) assert.equal(await getMeStatus(app, token), 200)
      h.clock.advance(61 * MINUTES)
      for (const app of [issuer, other]) assert.equal(await getMeStatus(app, token), 401)
    }
  })

  test('concurrent refreshes of one token at both processes return tokens that stay valid at both processes', async () => {
    for (const [first, second] of [
      [h, ahead],
      [ahead, h],
    ] as const) {
      const { token } = await makeUser(h)
      h.clock.advance(61 * MINUTES)
      const answers = await Promise.all([first, second, first, second].map(app => renew(app, token)))
      for (const app of [first, second]) {
        for (const answer of answers) assert.equal(await getMeStatus(app, answer), 200)
      }
      h.clock.advance(31 * SECONDS)
      for (const app of [first, second]) assert.equal(await getMeStatus(app, answers[0]!), 200)
    }
  })
})

test('a token is accepted and refreshed if its iat and nbf are at most 60 s ahead, and refused if they are 61 s ahead', async () => {
  for (const [aheadSeconds, status] of [
    [60, 200],
    [61, 401],
  ] as const) {
    const { token } = await makeUser(h)
    h.clock.advance(-aheadSeconds * SECONDS)
    assert.equal(await getMeStatus(h, token), status)
    assert.equal((await refresh(h, token)).status, status)
    h.clock.advance(aheadSeconds * SECONDS)
  }
})
