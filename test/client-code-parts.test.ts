import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { Courtside, memoryStorage } from 'courtside-client'
import { harness } from './support/app.ts'
import { failsWith } from './support/client.ts'
import { listen } from './support/event-stream.ts'
import { makeUser } from './support/factories.ts'
import { otherThan, queuedCode } from './support/scenario.ts'
import { WITH_BUDGETS } from './support/strangers.ts'

// After one wrong guess at an address, its codes have two parts.
const h = harness({ ...WITH_BUDGETS, GUESS_BUDGETS: 'address=1,installation=100000' })
let url: string

/** Requests a code of two parts with a new client. @returns the client and the parts */
async function requestTwoParts(email: string) {
  const client = new Courtside({ url, language: 'en' })
  await client.requestOtp({ email })
  await assert.rejects(client.verifyOtp({ email, code: otherThan(await queuedCode(h, email)) }))
  h.clock.advance(60_000)
  await client.resendOtp()
  const [first, second] = (await queuedCode(h, email)).split(' ') as [string, string]
  assert.match(second, /^\d{4}$/)
  return { client, first, second }
}

describe('the client and codes of several parts', { timeout: 60_000 }, () => {
  before(async () => {
    url = await listen(h.app)
  })

  test('the client signs in with the parts of a code, one after another', async () => {
    const { email } = await makeUser(h)
    const { client, first, second } = await requestTwoParts(email)
    assert.deepEqual(await client.verifyOtp({ email, code: first }), {
      next_part: true,
      message: 'Now enter the next four digits.',
    })
    assert.equal((await client.verifyOtp({ email, code: second })).is_new_user, false)
    assert.equal((await client.me()).email, email)
  })

  test('the client signs in with all parts of a code in one text, also after the first part', async () => {
    for (const hasEnteredFirst of [false, true]) {
      const { email } = await makeUser(h)
      const { client, first, second } = await requestTwoParts(email)
      if (hasEnteredFirst) await client.verifyOtp({ email, code: first })
      await client.verifyOtp({ email, code: `${first}, then ${second}` })
      assert.equal((await client.me()).email, email)
    }
  })

  test('after a logout with forget, the service no longer recognizes the client, and after a plain logout it does', async () => {
    for (const forget of [true, false]) {
      const { email, token } = await makeUser(h)
      const storage = memoryStorage()
      await storage.set('token', token)
      const client = new Courtside({ url, storage })
      await client.logout({ forget })
      // A stranger has just requested a code. Only a known client need not wait for this request.
      await new Courtside({ url }).requestOtp({ email })
      // After `forget`, even a request with the old token is one of a stranger.
      await storage.set('last_token', token)
      const request = client.requestOtp({ email })
      if (forget) await assert.rejects(request, failsWith(429, 'wait'))
      else await request
    }
  })
})
