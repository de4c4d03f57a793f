import assert from 'node:assert/strict'
import { test } from 'node:test'
import { harness } from './support/app.ts'
import { makeUser } from './support/factories.ts'
import { newEmail } from './support/scenario.ts'
import { addressIn, strangers, WITH_BUDGETS } from './support/strangers.ts'

/** Returns the number of parts of a code. */
const countParts = (code: string) => code.split(' ').length

const h = harness({ ...WITH_BUDGETS, GUESS_BUDGETS: 'installation=100000' })
const { ask, miss, enter } = strangers(h)

/** Makes wrong guesses from one network at fresh addresses, five at each. */
async function spend(network: number, count: number): Promise<void> {
  for (let left = count; left > 0; left -= 5) {
    const email = newEmail()
    await miss(email, await ask(email, { network }), Math.min(5, left), { network })
  }
}

test('after 50 wrong guesses, codes to this network have two parts; one guess comes back every 1728 s', async () => {
  await spend(1, 50)
  assert.equal(countParts(await ask(newEmail(), { network: 1 })), 2)
  assert.equal(countParts(await ask(newEmail(), { network: 2 })), 1)
  h.clock.advance(1728 * 1000 - 1)
  assert.equal(countParts(await ask(newEmail(), { network: 1 })), 2)
  h.clock.advance(1)
  assert.equal(countParts(await ask(newEmail(), { network: 1 })), 1)
})

test('after more than 250 wrong guesses in 24 hours, codes to this network have three parts', async () => {
  await spend(3, 250)
  assert.equal(countParts(await ask(newEmail(), { network: 3 })), 2)
  await spend(3, 1)
  assert.equal(countParts(await ask(newEmail(), { network: 3 })), 3)
})

test('a success does not give back the wrong guesses at a code that a new code has replaced', async () => {
  const { email } = await makeUser(h)
  h.clock.advance(60_000)
  await miss(email, await ask(email, { network: 5 }), 3, { network: 5 })
  h.clock.advance(600_000)
  assert.equal((await enter(email, await ask(email, { network: 5 }), { network: 5 })).status, 200)
  const network = await h.ctx.networks.hashNetwork(addressIn(5))
  assert.deepEqual(await h.database.sql`select guesses from sign_in_network where network = ${network}`, [
    { guesses: 3 },
  ])
})

test('a success gives the wrong guesses at its own code back to its own network', async () => {
  const { email } = await makeUser(h)
  await spend(4, 46)
  const code = await ask(email, { network: 4 })
  await miss(email, code, 3, { network: 4 })
  assert.equal((await enter(email, code, { network: 4 })).status, 200)
  await spend(4, 3)
  assert.equal(countParts(await ask(newEmail(), { network: 4 })), 1)
  await spend(4, 1)
  assert.equal(countParts(await ask(newEmail(), { network: 4 })), 2)
})
