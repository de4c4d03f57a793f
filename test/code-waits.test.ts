import assert from 'node:assert/strict'
import { test } from 'node:test'
import { harness } from './support/app.ts'
import { makeUser } from './support/factories.ts'
import { newEmail, profile } from './support/scenario.ts'
import { strangers, WITH_BUDGETS } from './support/strangers.ts'

const MINUTE = 60_000
const DAY = 86_400_000

const h = harness(WITH_BUDGETS)
const { request, guess, ask, miss } = strangers(h)

/** Asks for codes as early as the waits allow, and returns the waits in minutes. */
async function measureWaits(email: string, count: number, network = 1): Promise<number[]> {
  const waits: number[] = []
  for (let mail = 0; mail < count; mail += 1) {
    const sent = await request(email, { network })
    assert.equal(sent.status, 200, sent.text)
    const seconds = Number(sent.headers['retry-after'])
    h.clock.advance(seconds * 1000 - 1)
    assert.equal((await request(email, { network })).status, 429)
    h.clock.advance(1)
    waits.push(seconds / 60)
  }
  return waits
}

test('the first three mails to a network are 60 s apart, and then each wait is twice as long, up to four hours', async () => {
  const expected = [1, 1, 2, 4, 8, 16, 32, 64, 128, 240, 240]
  for (const email of [(await makeUser(h)).email, newEmail()]) {
    assert.deepEqual(await measureWaits(email, expected.length), expected)
  }
})

test('a network that asked often waits longer than a new network, so the new network gets its turn', async () => {
  const { email } = await makeUser(h)
  await measureWaits(email, 5)
  await ask(email, { network: 1 })
  h.clock.advance(MINUTE)
  assert.equal((await request(email, { network: 1 })).status, 429)
  assert.equal((await request(email, { network: 2 })).status, 200)
  // The wait of the first network counts from the last mail to any stranger.
  const refused = await request(email, { network: 1 })
  assert.equal(refused.headers['retry-after'], String(16 * 60))
})

test('mails to strangers of different networks are at least 60 s apart', async () => {
  const { email } = await makeUser(h)
  await ask(email, { network: 1 })
  h.clock.advance(MINUTE - 1)
  const refused = await request(email, { network: 2 })
  assert.deepEqual([refused.status, refused.headers['retry-after']], [429, '1'])
  h.clock.advance(1)
  assert.equal((await request(email, { network: 2 })).status, 200)
})

test('a success in a network resets its waits, but not the waits of other networks', async () => {
  const { email } = await makeUser(h)
  await measureWaits(email, 5, 1)
  await measureWaits(email, 5, 2)
  assert.equal((await guess(email, await ask(email, { network: 2 }), { network: 2 })).status, 200)
  h.clock.advance(DAY / 2)
  assert.equal((await request(email, { network: 2 })).headers['retry-after'], '60')
  h.clock.advance(DAY / 2)
  assert.equal((await request(email, { network: 1 })).headers['retry-after'], String(16 * 60))
})

test('a success with a code of another network leaves the waits of that network', async () => {
  const { email } = await makeUser(h)
  await measureWaits(email, 4, 1)
  const code = await ask(email, { network: 1 })
  assert.equal((await guess(email, code, { network: 2 })).status, 200)
  h.clock.advance(DAY)
  assert.equal((await request(email, { network: 1 })).headers['retry-after'], String(16 * 60))
})

test('seven days after the last mail to a network, its waits start again at 60 s', async () => {
  const { email } = await makeUser(h)
  await measureWaits(email, 6)
  await ask(email, { network: 1 })
  h.clock.advance(7 * DAY - 1)
  assert.equal((await request(email, { network: 1 })).headers['retry-after'], String(64 * 60))
  h.clock.advance(7 * DAY)
  assert.equal((await request(email, { network: 1 })).headers['retry-after'], '60')
})

test('wrong guesses lengthen no wait', async () => {
  const { email } = await makeUser(h)
  for (let round = 0; round < 2; round += 1) {
    const sent = await request(email, { network: 1 })
    assert.deepEqual([sent.status, sent.headers['retry-after']], [200, '60'])
    await miss(email, '0000', 3, { network: 1 })
    h.clock.advance(MINUTE)
  }
})

test('a sign-up after a sign-in without a mail need not wait, and the two count as one mail', async () => {
  const email = newEmail()
  await ask(email)
  assert.equal((await request(profile(email))).headers['retry-after'], '60')
  h.clock.advance(MINUTE)
  assert.equal((await request(email)).headers['retry-after'], '60')
  h.clock.advance(MINUTE)
  assert.equal((await request(email)).headers['retry-after'], '120')
})
