import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { createBuckets } from '../src/auth/budgets.ts'
import { createInstallationBudget } from '../src/auth/installation-budget.ts'
import { anotherApp, harness } from './support/app.ts'
import { makeUser } from './support/factories.ts'
import { newEmail, otherThan, signUp } from './support/scenario.ts'
import { addressIn, strangers, WITH_BUDGETS } from './support/strangers.ts'

const DAY = 86_400_000

/** Returns the number of parts of a code. */
const countParts = (code: string) => code.split(' ').length

const h = harness({
  ...WITH_BUDGETS,
  GUESS_BUDGETS: 'address=1000,network=1000,installation=20',
  SIGN_UP_LIMITS: 'off',
  METRICS_TOKEN: 'vN8qW2rT6yU1iO5pA9sD3fG7hJ0kL4zX',
})
const { ask, miss, enter, guess } = strangers(h)
const parts = async () => countParts(await ask(newEmail(), { network: 1 }))
const audited = () => h.logged.filter(line => line.audit === 'guess_budget_spent').length
const readWarning = async () => (await h.call('GET', '/readyz')).body.warning as string | undefined
const readShare = async () => {
  const { text } = await h.call('GET', '/metrics', { token: 'vN8qW2rT6yU1iO5pA9sD3fG7hJ0kL4zX' })
  return Number(/^courtside_guess_budget_used_ratio (\S+)$/m.exec(text)![1])
}

async function spend(count: number): Promise<void> {
  for (let left = count; left > 0; left -= 5) {
    const email = newEmail()
    await miss(email, await ask(email, { network: 1 }), Math.min(5, left), { network: 1 })
  }
}

test('a spent budget makes codes of two parts for 7 days, and the audit trail, /readyz and /metrics report it', async () => {
  await spend(19)
  assert.deepEqual([await parts(), audited(), await readWarning(), await readShare()], [1, 0, undefined, 0.95])
  await spend(1)
  assert.deepEqual([await parts(), audited(), await readShare()], [2, 1, 1])
  assert.match((await readWarning())!, /guess/)
  // Guesses at codes of two parts do not count here, so they do not extend the 7 days.
  await spend(10)
  assert.equal(audited(), 1)
  h.clock.advance(7 * DAY - 1)
  assert.equal(await parts(), 2)
  h.clock.advance(1)
  assert.deepEqual([await parts(), await readWarning(), await readShare()], [1, undefined, 0])
})

test('if the row of the installation is missing, the count starts again at zero, and no request fails', async () => {
  const deleteRow = () => h.database.sql`delete from sign_in_installation`
  await spend(19)
  await deleteRow()
  assert.deepEqual([await parts(), await readWarning(), await readShare()], [1, undefined, 0])
  await spend(15)
  assert.equal(await readShare(), 0.75)
  await spend(5)
  assert.deepEqual([await parts(), await readShare()], [2, 1])
  for (let round = 0; round < 20; round += 1) {
    await deleteRow()
    const guesses = Array.from({ length: 8 }, async (_, index) => {
      const email = newEmail()
      await miss(email, await ask(email, { network: 300 + index }), 1, { network: 300 + index })
    })
    await Promise.all(guesses)
    assert.equal(await readShare(), 8 / 20)
  }
})

test('a right guess does not count, and a success gives back the wrong guesses at its code', async () => {
  h.clock.advance(8 * DAY)
  await spend(17)
  const { email } = await makeUser(h)
  const code = await ask(email, { network: 2 })
  await miss(email, code, 2, { network: 2 })
  assert.equal((await enter(email, code, { network: 2 })).status, 200)
  await spend(2)
  assert.equal(await parts(), 1)
  await spend(1)
  assert.equal(await parts(), 2)
})

test('the wrong guesses of a known client at its own code do not count', async () => {
  h.clock.advance(8 * DAY)
  await spend(19)
  const { email, token } = await signUp(h)
  h.clock.advance(60_000)
  await miss(email, await ask(email, { token }), 5, { token })
  assert.equal(await parts(), 1)
})

test('a success gives back no wrong guess that counted in the previous 7 days', async () => {
  h.clock.advance(8 * DAY)
  await spend(1)
  h.clock.advance(7 * DAY - 60_000)
  const { email } = await makeUser(h)
  const code = await ask(email, { network: 2 })
  await miss(email, code, 4, { network: 2 })
  h.clock.advance(120_000)
  await spend(19)
  assert.equal((await enter(email, code, { network: 2 })).status, 200)
  assert.equal(await parts(), 1)
  await spend(1)
  assert.equal(await parts(), 2)
})

test('twenty times as many wrong guesses at any codes, not counting those before a success, lead to three parts for 24 hours', async () => {
  h.clock.advance(8 * DAY)
  await spend(397)
  const { email } = await makeUser(h)
  const code = await ask(email, { network: 2 })
  await miss(email, code, 2, { network: 2 })
  assert.equal((await enter(email, code, { network: 2 })).status, 200)
  await spend(2)
  assert.equal(await parts(), 2)
  await spend(1)
  assert.equal(await parts(), 3)
  h.clock.advance(DAY - 1)
  assert.equal(await parts(), 3)
  h.clock.advance(1)
  assert.equal(await parts(), 2)
  // The count has started again at zero, so one more guess does not lead to three parts again.
  await spend(1)
  assert.equal(await parts(), 2)
})

test('twenty times as many guesses outside the other budgets lead to three parts for strangers outside, until the 7 days end', async t => {
  h.clock.advance(9 * DAY)
  const small = await anotherApp(h, { ...WITH_BUDGETS, GUESS_BUDGETS: 'address=1000,network=2,installation=3' })
  t.after(() => small.close())
  const from = strangers({ ...h, ...small })
  const askParts = async (network: number) => countParts(await from.ask(newEmail(), { network }))
  const guessOften = async (network: number, count: number) => {
    for (let index = 0; index < count; index += 1) {
      const email = newEmail()
      await from.miss(email, await from.ask(email, { network }), 1, { network })
    }
  }
  // Each network makes two guesses within its budget first. Its eight other guesses count outside.
  for (let network = 200; network < 207; network += 1) await guessOften(network, 10)
  await guessOften(207, 5)
  assert.equal(await askParts(207), 2)
  await guessOften(207, 1)
  assert.deepEqual([await askParts(207), await askParts(208)], [3, 2])
  h.clock.advance(7 * DAY - 1)
  await guessOften(209, 2)
  assert.equal(await askParts(209), 3)
  h.clock.advance(1)
  assert.equal(await askParts(209), 2)
})

test('at most ten guesses of strangers run uncounted at the same time, and a known client never waits for them', async () => {
  const buckets = createBuckets({ address: 1000, network: 1000, installation: 1000 })
  const installation = createInstallationBudget(h.database.sql, buckets, () => h.clock.now())
  let [started, end] = [0, () => {}]
  const ended = new Promise<void>(resolve => {
    end = resolve
  })
  const guessOnce = async () => {
    started += 1
    await ended
    return { result: undefined, wrong: { onePart: 1, within: 1, outside: 0 } }
  }
  const strange = Array.from({ length: 45 }, () => installation.run(true, guessOnce))
  await setImmediate()
  assert.equal(started, 10)
  const known = installation.run(false, guessOnce)
  await setImmediate()
  assert.equal(started, 11)
  end()
  await Promise.all([...strange, known])
  assert.equal(started, 46)
})

test('two processes share the count, and a burst exceeds it by at most ten guesses for each process', async () => {
  h.clock.advance(9 * DAY)
  const second = await anotherApp(h, { ...WITH_BUDGETS, GUESS_BUDGETS: 'address=1000,network=1000,installation=20' })
  const targets = await Promise.all(
    Array.from({ length: 100 }, async (_, index) => {
      const email = newEmail()
      const code = await ask(email, { network: 3 + (index % 50) })
      return { email, code, network: 3 + (index % 50) }
    }),
  )
  await Promise.all(
    targets.flatMap(({ email, code, network }, index) =>
      [1, 2, 3].map(() => {
        const body = { email, code: otherThan(code.slice(0, 4)) }
        const app = index % 2 === 0 ? h : second
        return app.call('POST', '/api/v1/auth/verify-otp', { body, remoteAddress: addressIn(network) })
      }),
    ),
  )
  const [row] = await h.database.sql<{ sum: number }>`
    select sum(attempts)::int as sum from sign_in_code where email = any(${targets.map(({ email }) => email)}::text[])`
  assert.ok(row!.sum >= 20 && row!.sum <= 40, `${row!.sum} guesses were compared`)
  await second.close()
  const { email, code, network } = targets[99]!
  assert.equal((await guess(email, code, { network })).status, 422)
})
