import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createTokens } from '../src/auth/jwt.ts'
import { harness } from './support/app.ts'
import { makeUser } from './support/factories.ts'
import { getMeStatus, refresh, renew } from './support/refreshes.ts'
import { readPayload } from './support/scenario.ts'

const h = harness()

const SECONDS = 1_000
const MINUTES = 60_000
const DAYS = 86_400_000

/** Makes a user whose first token has expired. */
async function makeExpired(): Promise<string> {
  const { token } = await makeUser(h)
  h.clock.advance(61 * MINUTES)
  return token
}

describe('a refresh of a token that a refresh has just returned', () => {
  test('if a slow answer to a refresh overwrites a newer one, the client still has the newest token 31 s later', async () => {
    const token = await makeExpired()
    const slow = await renew(h, token)
    const quick = await renew(h, token)
    assert.equal(await getMeStatus(h, quick), 200)
    const late = await renew(h, quick)
    assert.equal(await getMeStatus(h, late), 200)
    h.clock.advance(31 * SECONDS)
    assert.equal(await getMeStatus(h, slow), 200)
    assert.equal(await getMeStatus(h, late), 200)
    assert.equal(await getMeStatus(h, await renew(h, slow)), 200)
  })

  test('for 30 s after a refresh has issued a token, a refresh of this token returns the same token, and later a successor', async () => {
    const next = await renew(h, await makeExpired())
    h.clock.advance(30 * SECONDS - 1)
    assert.equal(await renew(h, next), next)

    const other = await renew(h, await makeExpired())
    h.clock.advance(30 * SECONDS)
    assert.notEqual(await renew(h, other), other)
  })

  test('after a refresh has returned a token again, a refresh of this token returns the same token for another 30 s', async () => {
    const token = await makeExpired()
    const next = await renew(h, token)
    h.clock.advance(29 * SECONDS)
    assert.equal(await renew(h, token), next)
    h.clock.advance(29 * SECONDS)
    assert.equal(await renew(h, next), next)
    h.clock.advance(29 * SECONDS)
    assert.equal(await renew(h, next), next)
    h.clock.advance(30 * SECONDS)
    assert.notEqual(await renew(h, next), next)
  })

  test('concurrent refreshes of a superseded token and its successor all return the successor, in 100 rounds', async () => {
    for (let round = 0; round < 100; round += 1) {
      const { token } = await makeUser(h)
      const next = await renew(h, token)
      const racers = Array.from({ length: 6 }, (_, index) => renew(h, index % 2 ? token : next))
      assert.deepEqual(new Set(await Promise.all(racers)), new Set([next]))
    }
  })

  test('a refresh of the first token of a session never returns this token, because a sign-in issued it', async () => {
    const { token } = await makeUser(h)
    assert.notEqual(await renew(h, token), token)
  })

  test('a refresh returns the same token only while this token is valid for 5 more minutes', async () => {
    for (const [remainingMs, isSame] of [
      [5 * MINUTES + 1, true],
      [5 * MINUTES, false],
    ] as const) {
      const token = await makeExpired()
      const next = await renew(h, token)
      h.clock.advance(60 * MINUTES - remainingMs - 25 * SECONDS)
      await h.database.sql`update session set given_at = ${h.clock.now()} where id = ${readPayload(token).sid}`
      h.clock.advance(25 * SECONDS)
      assert.equal((await renew(h, next)) === next, isSame)
    }
  })

  test('a refresh of a superseded token returns only a token that is valid for more than 5 minutes and 30 s', async () => {
    for (const [remainingMs, isSame] of [
      [330 * SECONDS + 1, true],
      [330 * SECONDS, false],
    ] as const) {
      const token = await makeExpired()
      const lost = await renew(h, token)
      h.clock.advance(60 * MINUTES - remainingMs)
      const usable = await renew(h, token)
      assert.equal(usable === lost, isSame)
      h.clock.advance(30 * SECONDS - 1)
      assert.equal(await renew(h, usable), usable)
    }
  })

  test('in the last minutes of a session, a refresh returns the same token, because no later token is valid for longer', async () => {
    const { token } = await makeUser(h)
    h.clock.advance(7 * DAYS - 4 * MINUTES)
    const last = await renew(h, token)
    h.clock.advance(20 * SECONDS)
    assert.equal(await renew(h, last), last)
    assert.equal((await refresh(h, last)).body.expires_in, 220)
    h.clock.advance(60 * SECONDS)
    assert.equal(await getMeStatus(h, last), 200)
  })
})

describe('the row of a session', () => {
  test('200 refreshes, each of the newest token and one second after the other, issue at most one token in 30 s', async () => {
    let token = await makeExpired()
    for (let round = 0; round < 200; round += 1) {
      token = await renew(h, token)
      h.clock.advance(SECONDS)
    }
    const [row] = await h.database.sql<{ kept: number; generation: number }>`
      select cardinality(superseded_at) as kept, generation from session where id = ${readPayload(token).sid}`
    assert.deepEqual(row, { kept: 1, generation: 2 })
  })

  test('a row keeps the 8 latest times of superseded tokens, even if a process of the previous version left 30', async () => {
    const first = await makeExpired()
    const { sid, sub, iat, nbf, exp } = readPayload(first)
    const times = Array.from({ length: 30 }, (_, index) => new Date(h.clock.now().getTime() - 30 + index))
    await h.database.sql`update session set generation = 31, superseded_at = ${times} where id = ${sid}`
    const sign = (generation: number) =>
      createTokens(h.ctx.keys).sign({ sub: Number(sub), sid, generation, iat, nbf, exp })
    const newest = await renew(h, sign(31))
    const [row] = await h.database.sql`select superseded_at from session where id = ${sid}`
    assert.deepEqual(row!.superseded_at, [...times.slice(-7), h.clock.now()])
    for (const generation of [31, 30, 24]) assert.equal(await renew(h, sign(generation)), newest)
    assert.equal((await refresh(h, sign(23))).status, 401)
  })
})
