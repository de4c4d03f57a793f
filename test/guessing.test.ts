import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, test } from 'node:test'
import { harness } from './support/app.ts'
import { otherThan, queuedCode, signUp } from './support/scenario.ts'

const DAY_MS = 86_400_000

describe('a stranger who never tires', () => {
  const h = harness()

  test('has the guesses at one account that SECURITY.md says', async () => {
    const { email } = await signUp(h)
    h.clock.advance(60_000)
    const start = h.clock.now().getTime()
    const guesses = [0, 0, 0]
    for (let day = 0; day < guesses.length; day = Math.floor((h.clock.now().getTime() - start) / DAY_MS)) {
      const asked = await h.call('POST', '/api/v1/auth/request-otp', { body: { email } })
      if (asked.status === 429) {
        h.clock.advance(Number(asked.headers['retry-after']) * 1000)
        continue
      }
      const body = { email, code: otherThan(await queuedCode(h, email)) }
      while ((await h.database.sql`select from sign_in_code where email = ${email} and attempts < 5`).length > 0) {
        assert.equal((await h.call('POST', '/api/v1/auth/verify-otp', { body })).status, 422)
        guesses[day]! += 1
      }
    }
    assert.deepEqual(guesses, [70, 30, 30])
    const security = await readFile(new URL('../SECURITY.md', import.meta.url), 'utf8')
    assert.match(security, /70 guesses on the first day and 30 on each/)
  })
})
