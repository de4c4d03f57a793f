import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, test } from 'node:test'
import { harness } from './support/app.ts'
import { otherThan, queuedCode, signUp } from './support/scenario.ts'

const DAY_MS = 86_400_000
const MAX_ROUNDS = 200

describe('a stranger who guesses without pause', { timeout: 60_000 }, () => {
  const h = harness()

  test('a stranger who guesses without pause gets exactly as many guesses per day as SECURITY.md states', async () => {
    const { email } = await signUp(h)
    h.clock.advance(60_000)
    const start = h.clock.now().getTime()
    const currentDay = () => Math.floor((h.clock.now().getTime() - start) / DAY_MS)
    const hasAttemptsLeft = async () =>
      (await h.database.sql`select from sign_in_code where email = ${email} and attempts < 5`).length > 0
    const guesses = [0, 0, 0]
    // In each round, the stranger either waits or uses up a code.
    for (let round = 0; currentDay() < guesses.length; round += 1) {
      assert.ok(round < MAX_ROUNDS, `after ${round} rounds it is day ${currentDay()}`)
      const requested = await h.call('POST', '/api/v1/auth/request-otp', { body: { email } })
      if (requested.status === 429) {
        h.clock.advance(Number(requested.headers['retry-after']) * 1000)
        continue
      }
      const body = { email, code: otherThan(await queuedCode(h, email)) }
      for (let attempt = 1; await hasAttemptsLeft(); attempt += 1) {
        assert.ok(attempt <= 5, 'the attempts are not counted')
        assert.equal((await h.call('POST', '/api/v1/auth/verify-otp', { body })).status, 422)
        guesses[currentDay()]! += 1
      }
    }
    assert.deepEqual(guesses, [70, 30, 30])
    const security = await readFile(new URL('../SECURITY.md', import.meta.url), 'utf8')
    assert.match(security, /70 guesses on the first day and 30 on each/)
  })
})
