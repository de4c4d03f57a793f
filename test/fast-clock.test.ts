import assert from 'node:assert/strict'
import { test } from 'node:test'
import { unlock } from '../src/auth/codes.ts'
import { harness } from './support/app.ts'
import { makeUser } from './support/factories.ts'
import { newEmail, profile } from './support/scenario.ts'
import { strangers, WITH_BUDGETS } from './support/strangers.ts'

const MINUTE = 60_000
const DAY = 86_400_000

const h = harness({
  ...WITH_BUDGETS,
  THROTTLE_VERIFY_OTP: '30',
  SIGN_UP_LIMITS: '6,8',
  GUESS_BUDGETS: 'address=4,network=20,installation=8',
})
const { request, guess, ask, miss } = strangers(h)

let fresh = 0
/** Returns the number of a network that sent no request yet. */
function newNetwork(): number {
  fresh += 1
  return fresh
}

/** Runs a step while the clock is ahead. */
async function ahead<T>(ms: number, step: () => Promise<T>): Promise<T> {
  h.clock.advance(ms)
  const result = await step()
  h.clock.advance(-ms)
  return result
}

const countParts = (code: string) => code.split(' ').length

test('a mail whose time is a day in the future delays neither a stranger nor a known client', async () => {
  const { email, token } = await makeUser(h)
  const network = newNetwork()
  await ahead(DAY, async () => {
    for (const from of [{ network }, { network, token }]) await ask(email, from)
  })
  for (const from of [{ network }, { network: newNetwork() }, { network, token }]) {
    await ask(email, from)
    const refused = await request(email, from)
    assert.deepEqual([refused.status, refused.headers['retry-after']], [429, '60'])
    h.clock.advance(MINUTE)
  }
})

test('a code made while the clock was a day ahead is refused after the clock is corrected', async () => {
  const { email } = await makeUser(h)
  const network = newNetwork()
  const code = await ahead(DAY, () => ask(email, { network }))
  h.clock.advance(20 * MINUTE)
  assert.equal((await guess(email, code, { network })).body.code, 'otp_invalid')
  assert.equal((await guess(email, await ask(email, { network }), { network })).status, 200)
})

test('a wait counts from a mail whose time is less than 60 s in the future', async () => {
  const { email, token } = await makeUser(h)
  const network = newNetwork()
  await ahead(MINUTE - 10_000, async () => {
    for (const from of [{ network }, { network, token }]) await ask(email, from)
  })
  for (const from of [{ network }, { network, token }]) {
    const refused = await request(email, from)
    assert.deepEqual([refused.status, refused.headers['retry-after']], [429, '110'])
  }
})

test('users unlock ends every wait, even if the clock was ahead for less than 60 s', async () => {
  const { email, token } = await makeUser(h)
  const network = newNetwork()
  await ahead(MINUTE - 10_000, async () => {
    for (const from of [{ network }, { network, token }]) await ask(email, from)
  })
  assert.equal(await unlock(h.database.sql, email), true)
  for (const from of [{ network }, { network, token }]) await ask(email, from)
})

test('a code made a day in the future is not the newest, so a guess from elsewhere can use the code of today', async () => {
  const { email } = await makeUser(h)
  await ahead(DAY, () => ask(email, { network: newNetwork() }))
  const code = await ask(email, { network: newNetwork() })
  assert.equal((await guess(email, code, { network: newNetwork() })).status, 200)
})

test('if the last mail is a day in the future, the mails to a network count anew, and no sign-up is pending', async () => {
  const email = newEmail()
  const network = newNetwork()
  await ahead(DAY, async () => {
    for (let mail = 0; mail < 4; mail += 1) {
      await ask(profile(email), { network })
      h.clock.advance(10 * MINUTE)
    }
    h.clock.advance(-40 * MINUTE)
  })
  assert.equal((await request(email, { network })).headers['retry-after'], '60')
  const codes = await h.database.sql`select purpose, mails from sign_in_code where email = ${email}`
  assert.deepEqual(codes, [{ purpose: 'decoy', mails: 1 }])
})

test('windows of the sign-up limits that begin a day in the future are over', async () => {
  h.clock.advance(2 * DAY)
  const network = newNetwork()
  const signUps = async (count: number, from: number) => {
    const statuses = []
    for (let index = 0; index < count; index += 1) {
      statuses.push((await request(profile(newEmail()), { network: from })).status)
    }
    return statuses.join()
  }
  assert.equal(await ahead(DAY, () => signUps(7, network)), '200,200,200,200,200,200,429')
  assert.equal(await ahead(DAY, () => signUps(2, newNetwork())), '200,200')
  // The counts of the installation and of the network start again at zero, and the limits still apply.
  assert.equal(await signUps(7, network), '200,200,200,200,200,200,429')
  const refused = await request(profile(newEmail()), { network })
  assert.equal(refused.headers['retry-after'], '3600')
  h.clock.advance(60 * MINUTE)
  assert.equal(await signUps(1, network), '200')
})

test('budgets that were spent a day in the future are full, and guesses then count from now', async () => {
  h.clock.advance(30 * DAY)
  const { email } = await makeUser(h)
  const network = newNetwork()
  const spend = async () => {
    for (let round = 0; round < 2; round += 1) {
      await miss(email, await ask(email, { network }), 4, { network })
      h.clock.advance(MINUTE)
    }
    h.clock.advance(-2 * MINUTE)
  }
  await ahead(DAY, spend)
  assert.equal(countParts(await ask(email, { network })), 1)
  h.clock.advance(MINUTE)
  await spend()
  h.clock.advance(3 * MINUTE)
  assert.equal(countParts(await ask(email, { network })), 2)
})

test('three parts that the installation demands until more than a day in the future are over', async () => {
  h.clock.advance(30 * DAY)
  const { email } = await makeUser(h)
  const setEnd = (end: number) => h.database.sql`
    update sign_in_installation set guesses = 0, three_parts_until = ${new Date(h.clock.now().getTime() + end)}`
  await setEnd(DAY)
  assert.equal(countParts(await ask(email, { network: newNetwork() })), 3)
  h.clock.advance(MINUTE)
  await setEnd(DAY + 2 * MINUTE)
  assert.equal(countParts(await ask(email, { network: newNetwork() })), 1)
})

test('a counter of the throttle whose window begins a day in the future is over', async () => {
  const network = newNetwork()
  const statuses = async (count: number) => {
    const answers = []
    for (let index = 0; index < count; index += 1) answers.push(await guess(newEmail(), '0000', { network }))
    return answers
  }
  // The process also remembers a client that is over its limit.
  assert.equal((await ahead(DAY, () => statuses(31))).at(-1)!.status, 429)
  const answers = await statuses(31)
  assert.deepEqual([answers[0]!.status, answers[0]!.headers['x-ratelimit-remaining']], [422, '29'])
  assert.deepEqual([answers[30]!.status, answers[30]!.headers['retry-after']], [429, '60'])
  h.clock.advance(MINUTE)
  assert.equal((await statuses(1))[0]!.status, 422)
  const { email, token } = await makeUser(h)
  await ahead(DAY, () => h.call('POST', '/api/v1/auth/refresh', { token }))
  for (let count = 0; count < 60; count += 1) await h.call('POST', '/api/v1/auth/refresh', { token })
  const refused = await h.call('POST', '/api/v1/auth/refresh', { token })
  assert.deepEqual([refused.status, refused.headers['retry-after']], [429, '60'])
  assert.ok(email)
})
