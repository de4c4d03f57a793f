import assert from 'node:assert/strict'
import { test } from 'node:test'
import { anotherApp, harness } from './support/app.ts'
import { makeUser } from './support/factories.ts'
import { newEmail, signUp } from './support/scenario.ts'
import { addressIn, strangers, WITH_BUDGETS } from './support/strangers.ts'

const MINUTE = 60_000
const DAY = 86_400_000

/** Returns the number of parts of a code. */
const countParts = (code: string) => code.split(' ').length

const h = harness({ ...WITH_BUDGETS, GUESS_BUDGETS: 'installation=100000' })
const { guess, ask, miss, enter } = strangers(h)

/** Makes a number of wrong guesses at one address, five from each of several fresh networks. */
let fresh = 1000
async function spend(email: string, count: number): Promise<void> {
  for (let left = count; left > 0; left -= 5) {
    fresh += 1
    h.clock.advance(MINUTE)
    const code = await ask(email, { network: fresh })
    await miss(email, code, Math.min(5, left), { network: fresh })
  }
}

async function nextParts(email: string): Promise<number> {
  h.clock.advance(MINUTE)
  fresh += 1
  return countParts(await ask(email, { network: fresh }))
}

test('after ten wrong guesses, strangers’ codes have two parts; one guess comes back every nine days', async () => {
  const { email } = await makeUser(h)
  await spend(email, 9)
  assert.equal(await nextParts(email), 1)
  await spend(email, 1)
  const spentAt = h.clock.now().getTime()
  assert.equal(await nextParts(email), 2)
  h.clock.set(new Date(spentAt + 8 * DAY))
  assert.equal(await nextParts(email), 2)
  h.clock.set(new Date(spentAt + 9 * DAY))
  assert.equal(await nextParts(email), 1)
  await spend(email, 1)
  assert.equal(await nextParts(email), 2)
})

test('more than 50 wrong guesses in 24 hours make codes of three parts until the 24 hours end', async () => {
  const { email } = await makeUser(h)
  await spend(email, 50)
  const start = h.clock.now().getTime()
  assert.equal(await nextParts(email), 2)
  await spend(email, 1)
  assert.equal(await nextParts(email), 3)
  h.clock.set(new Date(start + DAY - MINUTE))
  assert.equal(await nextParts(email), 2)
})

test('a guess at a decoy counts like a guess at a code, so an unknown address gets as many parts', async () => {
  const email = newEmail()
  await spend(email, 10)
  assert.equal(await nextParts(email), 2)
})

test('from the moment the budget is spent, an earlier code of one part opens no session, and no attempt is reserved', async () => {
  const { email } = await makeUser(h)
  const early = await ask(email, { network: 1 })
  await spend(email, 10)
  const readAttempts = async () => {
    const [row] = await h.database.sql<{ attempts: number }>`
      select attempts from sign_in_code where email = ${email} order by sent_at limit 1`
    return row!.attempts
  }
  const before = await readAttempts()
  const { status, body } = await guess(email, early, { network: 1 })
  assert.deepEqual([status, body.code], [422, 'otp_invalid'])
  assert.match(body.message, /Demandez un nouveau code/)
  assert.equal(await readAttempts(), before)
  h.clock.advance(MINUTE)
  assert.equal((await enter(email, await ask(email, { network: 1 }), { network: 1 })).status, 200)
})

test('a known client’s code has one part, the client’s wrong guesses do not count, and a stranger’s wrong guess counts', async () => {
  const { email, token } = await signUp(h)
  const known = await ask(email, { token })
  await miss(email, known, 3, { token })
  const count = async () =>
    (await h.database.sql<{ guesses: number }>`select guesses from sign_in_address where email = ${email}`)[0]!.guesses
  assert.equal(await count(), 0)
  await miss(email, known, 1, { network: 5 })
  assert.equal(await count(), 1)
  await spend(email, 10)
  h.clock.advance(MINUTE)
  const next = await ask(email, { token })
  assert.equal(countParts(next), 1)
  // A code of one part is not enough for a stranger.
  assert.equal((await guess(email, next, { network: 6 })).status, 422)
  assert.equal((await guess(email, next, { token })).status, 200)
})

test('a right guess is given back to the address, but a success gives nothing else back', async () => {
  const { email } = await makeUser(h)
  h.clock.advance(MINUTE)
  const code = await ask(email, { network: 2 })
  await miss(email, code, 3, { network: 2 })
  assert.equal((await guess(email, code, { network: 2 })).status, 200)
  const [row] = await h.database.sql`
    select guesses, guesses_full_at from sign_in_address where email = ${email}`
  assert.deepEqual(row, { guesses: 3, guesses_full_at: new Date(h.clock.now().getTime() + 27 * DAY) })
})

test('a right guess at the own code gives the guess at the other code back to the address and the network', async () => {
  const { email } = await makeUser(h)
  h.clock.advance(MINUTE)
  const other = await ask(email, { network: 8 })
  h.clock.advance(MINUTE)
  const own = await ask(email, { network: 9 })
  assert.notEqual(own, other, 'two equal codes by chance; run the test again')
  assert.equal((await guess(email, own, { network: 9 })).status, 200)
  const network = await h.ctx.networks.hashNetwork(addressIn(9))
  const [row] = await h.database.sql`
    select sign_in_address.guesses as address, sign_in_network.guesses as network
    from sign_in_address, sign_in_network where email = ${email} and network = ${network}`
  assert.deepEqual(row, { address: 0, network: 0 })
})

test("if an address has one guess left, a guess at two codes counts only at the caller's own code", async () => {
  const { email } = await makeUser(h)
  await spend(email, 9)
  h.clock.advance(MINUTE)
  const own = await ask(email, { network: 10 })
  h.clock.advance(MINUTE)
  const other = await ask(email, { network: 11 })
  assert.deepEqual([own, other].map(countParts), [1, 1])
  await miss(email, own, 1, { network: 10 })
  const rows = await h.database.sql`
    select attempts from sign_in_code where email = ${email} order by sent_at desc limit 2`
  assert.deepEqual(rows, [{ attempts: 0 }, { attempts: 1 }])
})

test('users unlock refills the budget of an address', async () => {
  const { email } = await makeUser(h)
  await spend(email, 10)
  assert.equal(await nextParts(email), 2)
  const { unlock } = await import('../src/auth/codes.ts')
  assert.equal(await unlock(h.database.sql, email), true)
  assert.equal(countParts(await ask(email, { network: 99 })), 1)
})

test('with GUESS_BUDGETS=off no guess counts, each code has one part, and the waits do not grow', async () => {
  const other = await anotherApp(h, { ...WITH_BUDGETS, GUESS_BUDGETS: 'off' })
  const off = strangers({ ...h, ...other })
  const email = newEmail()
  for (let round = 0; round < 12; round += 1) {
    const code = await off.ask(email)
    assert.match(code, /^\d{4}$/)
    await off.miss(email, code, 5)
    h.clock.advance(MINUTE)
  }
  const [row] = await h.database.sql`select guesses, guesses_full_at from sign_in_address where email = ${email}`
  assert.deepEqual(row, { guesses: 0, guesses_full_at: null })
  await other.close()
})
