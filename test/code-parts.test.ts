import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { unlock } from '../src/auth/codes.ts'
import { harness } from './support/app.ts'
import { makeUser } from './support/factories.ts'
import { newEmail, otherThan, signUp } from './support/scenario.ts'
import { strangers, WITH_BUDGETS } from './support/strangers.ts'

const MINUTE = 60_000

// The first wrong guess at an address spends its budget.
const h = harness({ ...WITH_BUDGETS, GUESS_BUDGETS: 'address=1,installation=100000' })
const { guess, ask, miss, enter } = strangers(h)

/** Returns an account whose next code has two parts, and the parts. */
async function twoParts(network = 1, email?: string) {
  const address = email ?? (await makeUser(h)).email
  await miss(address, await ask(address, { network: 77 }), 1, { network: 77 })
  h.clock.advance(MINUTE)
  const [first, second] = (await ask(address, { network })).split(' ') as [string, string]
  return { email: address, first, second, network }
}

const readAttempts = async (email: string) =>
  (
    await h.database.sql<{ attempts: number }>`
      select attempts from sign_in_code where email = ${email} order by sent_at desc limit 1`
  )[0]!.attempts

describe('a code of several parts', () => {
  test('the parts of a code are different, the right first part gets otp_continue, and the last part opens a session', async () => {
    const { email, first, second, network } = await twoParts()
    assert.notEqual(first, second)
    const answer = await guess(email, first, { network })
    assert.deepEqual(answer.body, {
      message: 'Saisissez maintenant les quatre chiffres suivants.',
      code: 'otp_continue',
      errors: { code: ['Saisissez maintenant les quatre chiffres suivants.'] },
    })
    assert.equal((await guess(email, second, { network })).status, 200)
  })

  test('a right part costs no attempt, even if it is entered again, and all parts share five attempts', async () => {
    const { email, first, second, network } = await twoParts()
    for (let round = 0; round < 8; round += 1) {
      assert.equal((await guess(email, first, { network })).body.code, 'otp_continue')
    }
    assert.equal(await readAttempts(email), 0)
    const wrong = [first, second].includes('0000') ? '9998' : '0000'
    for (let round = 0; round < 4; round += 1) assert.equal((await guess(email, wrong, { network })).status, 422)
    assert.equal((await guess(email, first, { network })).body.code, 'otp_continue')
    assert.equal(await readAttempts(email), 4)
    assert.equal((await guess(email, second, { network })).status, 200)
  })

  test('the second part alone opens no session, and after five wrong guesses at both parts, no guess does', async () => {
    const { email, first, second, network } = await twoParts()
    await miss(email, otherThan(second), 2, { network })
    assert.equal((await guess(email, second, { network })).body.code, 'otp_invalid')
    assert.equal((await guess(email, first, { network })).body.code, 'otp_continue')
    await miss(email, otherThan(second), 2, { network })
    assert.equal((await guess(email, second, { network })).body.code, 'otp_invalid')
  })

  test('for a caller of another network the first part is still due, and the caller can enter both parts', async () => {
    const { email, first, second, network } = await twoParts()
    assert.equal((await guess(email, first, { network })).body.code, 'otp_continue')
    assert.equal((await guess(email, second, { network: 2 })).body.code, 'otp_invalid')
    assert.equal((await guess(email, first, { network: 2 })).body.code, 'otp_continue')
    assert.equal((await guess(email, second, { network: 2 })).status, 200)
  })

  test('the parts of a decoy get the same answers, and its last part opens no session', async () => {
    const { email, first, second, network } = await twoParts(1, newEmail())
    assert.equal((await guess(email, first, { network })).body.code, 'otp_continue')
    assert.equal((await guess(email, second, { network })).body.code, 'otp_invalid')
  })

  test('a repeat of a code shows the same parts, but does not renew the attempts', async () => {
    const { email, first, second, network } = await twoParts()
    await miss(email, [first, second].includes('0000') ? '9998' : '0000', 3, { network })
    h.clock.advance(MINUTE)
    assert.equal(await ask(email, { network }), `${first} ${second}`)
    assert.equal(await readAttempts(email), 3)
    assert.equal((await enter(email, `${first} ${second}`, { network })).status, 200)
  })

  test('a new code of several parts begins with its first part, although a part of the previous code was entered', async () => {
    const { email, first, network } = await twoParts()
    assert.equal((await guess(email, first, { network })).body.code, 'otp_continue')
    h.clock.advance(10 * MINUTE)
    const next = await ask(email, { network })
    assert.equal((await guess(email, next.slice(-4), { network })).body.code, 'otp_invalid')
    assert.equal((await enter(email, next, { network })).status, 200)
  })

  test('after an unlock, the next code has one part, not the earlier two', async () => {
    const { email, network } = await twoParts()
    await unlock(h.database.sql, email)
    assert.match(await ask(email, { network }), /^\d{4}$/)
  })

  test('right parts give their guesses back to the budgets', async () => {
    const { email, first, second, network } = await twoParts()
    const count = async () =>
      (await h.database.sql<{ guesses: number }>`select guesses from sign_in_address where email = ${email}`)[0]!
        .guesses
    const before = await count()
    await enter(email, `${first} ${second}`, { network })
    assert.equal(await count(), before)
  })

  test('if five requests with the last part are concurrent, exactly one opens a session', async () => {
    for (let round = 0; round < 50; round += 1) {
      const { email, first, second, network } = await twoParts(100 + round)
      await guess(email, first, { network })
      const answers = await Promise.all([1, 2, 3, 4, 5].map(() => guess(email, second, { network })))
      assert.deepEqual(answers.map(answer => answer.status).sort(), [200, 422, 422, 422, 422])
    }
  })

  test('a deletion accepts all parts of a stranger’s code, and the code of the known client', async () => {
    const remove = (token: string, code: string, network: number) =>
      h.call('DELETE', '/api/v1/auth/me', { token, body: { code }, remoteAddress: `2001:db8:${network}::1` })
    const { email, token } = await signUp(h)
    h.clock.advance(MINUTE)
    const { first, second, network } = await twoParts(1, email)
    assert.equal((await remove(token, first, network)).body.code, 'otp_continue')
    assert.equal((await remove(token, second, network)).status, 200)
    const other = await signUp(h)
    h.clock.advance(MINUTE)
    assert.equal((await remove(other.token, await ask(other.email, { token: other.token }), 1)).status, 200)
  })
})
