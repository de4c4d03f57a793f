import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, test } from 'node:test'
import { harness } from './support/app.ts'
import { otherThan, queuedCode, signUp } from './support/scenario.ts'

const DAY_MS = 86_400_000

describe('a stranger who guesses without pause', { timeout: 60_000 }, () => {
  const h = harness()

  test('a stranger has as many guesses at an account on each day as SECURITY.md says', async () => {
    const { email } = await signUp(h)
    h.clock.advance(60_000)
    const start = h.clock.now().getTime()
    const guesses = [0, 0, 0]
    // The loop ends because each round either waits or uses a code up.
    for (let day = 0; day < guesses.length; day = Math.floor((h.clock.now().getTime() - start) / DAY_MS)) {
      const requested = await h.call('POST', '/api/v1/auth/request-otp', { body: { email } })
      if (requested.status === 429) {
        h.clock.advance(Number(requested.headers['retry-after']) * 1000)
        continue
      }
      const body = { email, code: otherThan(await queuedCode(h, email)) }
      while ((await h.database.sql`select from sign_in_code where email = ${email} and attempts < 5`).length > 0) {
        assert.ok(guesses[day]! < 1_000, 'guesses are not counted')
        assert.equal((await h.call('POST', '/api/v1/auth/verify-otp', { body })).status, 422)
        guesses[day]! += 1
      }
    }
    assert.deepEqual(guesses, [70, 30, 30])
    const security = await readFile(new URL('../SECURITY.md', import.meta.url), 'utf8')
    assert.match(security, /70 guesses on the first day and 30 on each/)
  })
})
