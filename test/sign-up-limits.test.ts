import assert from 'node:assert/strict'
import { test } from 'node:test'
import { anotherApp, harness } from './support/app.ts'
import { makeUser } from './support/factories.ts'
import { newEmail, profile, queuedCode } from './support/scenario.ts'
import { addressIn, strangers, WITH_BUDGETS } from './support/strangers.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

const ENV = { ...WITH_BUDGETS, SIGN_UP_LIMITS: '6,12', GUESS_BUDGETS: 'off' }
const h = harness(ENV)
const { request, guess, ask } = strangers(h)

const signUps = async (network: number, count: number) => {
  const answers = []
  for (let index = 0; index < count; index += 1) answers.push(await request(profile(newEmail()), { network }))
  return answers.map(answer => answer.status)
}

const repeat = (status: number, count: number) => Array.from({ length: count }, () => status)

/** Starts a new hour, in which no sign-up counts. */
const newHour = () => h.clock.advance(HOUR)

test('a network may have six unfinished sign-ups in an hour, and a further one gets a 429 with Retry-After', async () => {
  assert.deepEqual(await signUps(1, 7), [...repeat(200, 6), 429])
  h.clock.advance(20 * MINUTE)
  const refused = await request(profile(newEmail()), { network: 1 })
  assert.deepEqual([refused.status, refused.body.code], [429, 'throttled'])
  assert.equal(refused.headers['retry-after'], String(40 * 60))
  assert.deepEqual(await signUps(2, 1), [200])
  h.clock.advance(40 * MINUTE)
  assert.deepEqual(await signUps(1, 1), [200])
  newHour()
})

test('if the row of the installation is missing, its sign-ups are counted from then on', async () => {
  assert.deepEqual(await signUps(1, 2), [200, 200])
  await h.database.sql`delete from sign_in_installation`
  assert.deepEqual(await signUps(2, 6), repeat(200, 6))
  assert.deepEqual(await signUps(3, 6), repeat(200, 6))
  assert.deepEqual(await signUps(4, 4), [...repeat(200, 3), 429])
  newHour()
})

test('a sign-up that was finished does not count', async () => {
  for (let index = 0; index < 8; index += 1) {
    const email = newEmail()
    assert.equal((await guess(email, await ask(profile(email), { network: 1 }), { network: 1 })).status, 200)
  }
  assert.deepEqual(await signUps(1, 7), [...repeat(200, 6), 429])
  newHour()
})

test('a sign-up during the wait, and a sign-up that a limit refuses, count neither for the network nor for the installation', async () => {
  const email = newEmail()
  await ask(profile(email), { network: 1 })
  for (let index = 0; index < 5; index += 1) {
    assert.equal((await request(profile(email), { network: 1 })).body.code, 'wait')
  }
  assert.deepEqual(await signUps(1, 15), [...repeat(200, 5), ...repeat(429, 10)])
  assert.deepEqual(await signUps(2, 7), [...repeat(200, 6), 429])
  newHour()
})

test('a network over its limit still gets the mail of a pending sign-up again', async () => {
  const email = newEmail()
  const code = await ask(profile(email), { network: 1 })
  assert.deepEqual(await signUps(1, 6), [...repeat(200, 5), 429])
  for (let index = 0; index < 2; index += 1) {
    h.clock.advance(MINUTE)
    assert.equal(await ask(email, { network: 1 }), code)
  }
  newHour()
})

test('a sign-up that is finished in another network is given back to the network that requested it', async () => {
  assert.deepEqual(await signUps(2, 3), repeat(200, 3))
  const email = newEmail()
  const code = await ask(profile(email), { network: 1 })
  assert.equal((await guess(email, code, { network: 2 })).status, 200)
  assert.deepEqual(await signUps(1, 6), repeat(200, 6))
  assert.deepEqual(await signUps(2, 4), [...repeat(200, 3), 429])
  newHour()
})

test('a sign-up of an earlier hour that is finished now gives nothing back to the present hour', async () => {
  assert.deepEqual(await signUps(1, 1), [200])
  h.clock.advance(59 * MINUTE)
  const early: [string, string][] = []
  for (let index = 0; index < 5; index += 1) {
    const email = newEmail()
    early.push([email, await ask(profile(email), { network: 1 })])
  }
  h.clock.advance(MINUTE)
  assert.deepEqual(await signUps(1, 7), [...repeat(200, 6), 429])
  for (const [email, code] of early) assert.equal((await guess(email, code, { network: 1 })).status, 200)
  assert.deepEqual(await signUps(1, 1), [429])
  newHour()
})

test('a sign-up whose first code belongs to an earlier hour gives back only the mails of the present hour', async () => {
  assert.deepEqual(await signUps(1, 1), [200])
  h.clock.advance(59 * MINUTE)
  const email = newEmail()
  await ask(profile(email), { network: 1 })
  h.clock.advance(MINUTE)
  assert.deepEqual(await signUps(1, 5), repeat(200, 5))
  h.clock.advance(10 * MINUTE)
  const code = await ask(profile(email), { network: 1 })
  assert.equal((await guess(email, code, { network: 1 })).status, 200)
  assert.deepEqual(await signUps(1, 2), [200, 429])
  newHour()
})

test('a finished sign-up from a shared network does not lower the sign-up counts', async () => {
  assert.deepEqual(await signUps(1, 6), repeat(200, 6))
  assert.deepEqual(await signUps(2, 6), repeat(200, 6))
  const shared = await anotherApp(h, { ...ENV, SHARED_NETWORKS: addressIn(8) })
  const fromClub = strangers({ ...h, ...shared })
  for (let index = 0; index < 8; index += 1) {
    const email = newEmail()
    const code = await fromClub.ask(profile(email), { network: 8 })
    assert.equal((await fromClub.guess(email, code, { network: 8 })).status, 200)
  }
  await shared.close()
  assert.deepEqual(await signUps(3, 4), [...repeat(200, 3), 429])
  newHour()
})

test('the first repeat of a code does not count, later repeats do', async () => {
  const email = newEmail()
  for (let mail = 0; mail < 4; mail += 1) {
    await ask(profile(email), { network: 1 })
    h.clock.advance(MINUTE)
  }
  // Three of the four mails count.
  assert.deepEqual(await signUps(1, 4), [...repeat(200, 3), 429])
  newHour()
})

test('when the limit of the installation is spent, each network still has three sign-ups', async () => {
  assert.deepEqual(await signUps(1, 6), repeat(200, 6))
  assert.deepEqual(await signUps(2, 6), repeat(200, 6))
  assert.deepEqual(await signUps(3, 4), [...repeat(200, 3), 429])
  assert.deepEqual(await signUps(4, 4), [...repeat(200, 3), 429])
  newHour()
})

test('if the installation refuses a sign-up, Retry-After names the end of the window that ends first', async () => {
  assert.deepEqual(await signUps(4, 3), repeat(200, 3))
  h.clock.advance(31 * MINUTE)
  assert.deepEqual(await signUps(5, 6), repeat(200, 6))
  assert.deepEqual(await signUps(6, 3), repeat(200, 3))
  const wait = async (network: number) => {
    const { status, headers } = await request(profile(newEmail()), { network })
    return [status, Number(headers['retry-after'])]
  }
  // The window of the installation began with that of network 4.
  assert.deepEqual(
    [await wait(4), await wait(5), await wait(6)],
    [
      [429, 29 * 60],
      [429, 60 * 60],
      [429, 29 * 60],
    ],
  )
  h.clock.advance(29 * MINUTE)
  assert.deepEqual(await signUps(4, 1), [200])
  newHour()
})

test('a refused sign-up sends nothing and starts no wait, and the address and the wait are checked first', async () => {
  const { email: registered } = await makeUser(h)
  await signUps(1, 5)
  const waiting = newEmail()
  await ask(profile(waiting), { network: 1 })
  const email = newEmail()
  assert.equal((await request(profile(email), { network: 1 })).body.code, 'throttled')
  assert.deepEqual(await h.database.sql`select email from sign_in_address where email = ${email}`, [])
  assert.equal((await request(profile(registered), { network: 1 })).status, 422)
  assert.equal((await request({ ...profile(waiting), first_name: 'Paul' }, { network: 1 })).body.code, 'wait')
  // A body with the address alone is a sign-in, which no limit refuses.
  assert.equal((await request(email, { network: 1 })).status, 200)
  newHour()
})

test('if thirty sign-ups from one network are concurrent, exactly six are sent', async () => {
  for (let round = 0; round < 30; round += 1) {
    newHour()
    const answers = await Promise.all(
      Array.from({ length: 30 }, () => request(profile(newEmail()), { network: 1000 + round })),
    )
    assert.equal(answers.filter(({ status }) => status === 200).length, 6)
  }
  newHour()
})

test('three equal concurrent sign-ups count once, so nothing is left after the code was used', async () => {
  for (let round = 0; round < 40; round += 1) {
    const [email, network] = [newEmail(), 2000 + round]
    const body = profile(email)
    const answers = await Promise.all([1, 2, 3].map(() => request(body, { network })))
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 429, 429])
    const code = await queuedCode(h, email, null, addressIn(network))
    assert.equal((await guess(email, code, { network })).status, 200)
  }
  const left = await h.database.sql`
    select sign_ups from sign_in_network where sign_ups > 0 and sign_ups_since >= ${h.clock.now()}`
  assert.deepEqual(left, [])
})

test('with SHARED_NETWORKS, SIGN_UP_LIMITS=off or the development mailbox, sign-ups have no limit', async () => {
  const settings: Record<string, string>[] = [
    { ...ENV, SHARED_NETWORKS: '2001:db8::/32' },
    { ...ENV, SIGN_UP_LIMITS: 'off' },
    { DEV_MAILBOX: 'on' },
  ]
  for (const env of settings) {
    const app = await anotherApp(h, env)
    for (let index = 0; index < 20; index += 1) {
      const body = profile(newEmail())
      const answer = await app.call('POST', '/api/v1/auth/request-otp', { body, remoteAddress: addressIn(9) })
      assert.equal(answer.status, 200)
    }
    await app.close()
  }
})
