import assert from 'node:assert/strict'
import { test } from 'node:test'
import { anotherApp, harness } from './support/app.ts'
import { makeUser } from './support/factories.ts'
import { newEmail, otherThan, profile } from './support/scenario.ts'
import { addressIn, strangers, WITH_BUDGETS } from './support/strangers.ts'

const MINUTE = 60_000
const DAY = 86_400_000

const ENV = { ...WITH_BUDGETS, GUESS_BUDGETS: 'address=3,network=1000,installation=1000000', SIGN_UP_LIMITS: 'off' }
const h = harness(ENV)
const { request, guess, ask } = strangers(h)

const readAddress = async (email: string) =>
  (
    await h.database.sql<{ guesses: number; guesses_full_at: Date | null }>`
      select guesses, guesses_full_at from sign_in_address where email = ${email}`
  )[0]!

test('of eight concurrent wrong guesses from four networks, exactly the three of the budget are compared', {
  timeout: 300_000,
}, async () => {
  const second = await anotherApp(h, ENV)
  for (let round = 0; round < 100; round += 1) {
    const { email } = await makeUser(h)
    // One code of one part for each network. Only the guesses at the own codes and at the last code can be compared.
    const codes: string[] = []
    for (let network = 1; network <= 4; network += 1) {
      codes.push(await ask(email, { network: round * 4 + network }))
      h.clock.advance(MINUTE)
    }
    const wrong = ['1111', '2222', '3333', '4444', '5555'].find(code => !codes.includes(code))!
    const answers = await Promise.all(
      [1, 2, 3, 4, 1, 2, 3, 4].map((network, index) => {
        const body = { email, code: wrong }
        const app = index % 2 === 0 ? h : second
        return app.call('POST', '/api/v1/auth/verify-otp', { body, remoteAddress: addressIn(round * 4 + network) })
      }),
    )
    assert.ok(answers.every(({ status }) => status === 422))
    assert.equal((await readAddress(email)).guesses, 3)
    const [row] = await h.database.sql`select sum(attempts)::int as sum from sign_in_code where email = ${email}`
    assert.deepEqual(row, { sum: 3 })
  }
  await second.close()
})

test('if a right guess and wrong guesses are concurrent, the right one succeeds, and exactly the wrong ones count', {
  timeout: 300_000,
}, async () => {
  for (let round = 0; round < 200; round += 1) {
    const { email } = await makeUser(h)
    const code = await ask(email)
    const answers = await Promise.all([otherThan(code), code, otherThan(code)].map(typed => guess(email, typed)))
    assert.deepEqual(
      answers.map(({ status }) => status),
      [422, 200, 422],
    )
    const { guesses, guesses_full_at } = await readAddress(email)
    // If a wrong guess arrives after the success, there is no code to compare.
    assert.ok(guesses <= 2)
    const expected = guesses === 0 ? 0 : guesses * 9 * DAY
    assert.equal(guesses_full_at ? guesses_full_at.getTime() - h.clock.now().getTime() : 0, expected)
  }
})

test('if a success and a request from another network are concurrent, the code of the other network stays valid or ends completely', {
  timeout: 300_000,
}, async () => {
  for (let round = 0; round < 200; round += 1) {
    const { email } = await makeUser(h)
    const code = await ask(email, { network: 1 })
    h.clock.advance(MINUTE)
    const [success, asked] = await Promise.all([guess(email, code, { network: 1 }), request(email, { network: 2 })])
    assert.deepEqual([success.status, asked.status], [200, 200])
    const rows = await h.database.sql<{ isEnded: boolean; isEmpty: boolean }>`
      select expires_at <= ${h.clock.now()} as "isEnded", sealed is null as "isEmpty" from sign_in_code
      where email = ${email}`
    for (const { isEnded, isEmpty } of rows) assert.equal(isEnded, isEmpty)
  }
})

test('of five concurrent requests that repeat a code, one repeats it, and the code stays the same', {
  timeout: 300_000,
}, async () => {
  for (let round = 0; round < 100; round += 1) {
    const email = newEmail()
    const code = await ask(profile(email))
    h.clock.advance(MINUTE)
    const answers = await Promise.all(Array.from({ length: 5 }, () => request(email)))
    assert.equal(answers.filter(({ status }) => status === 200).length, 1)
    const rows = await h.database.sql`select repeats, mails from sign_in_code where email = ${email}`
    assert.deepEqual(rows, [{ repeats: 1, mails: 2 }])
    assert.equal((await guess(email, code)).status, 200)
  }
})

test('requests, guesses and successes at two addresses from two networks cause no deadlock and no error', {
  timeout: 300_000,
}, async () => {
  for (let round = 0; round < 60; round += 1) {
    const emails = [(await makeUser(h)).email, newEmail()]
    const codes = [await ask(emails[0]!, { network: 1 }), await ask(profile(emails[1]!), { network: 2 })]
    h.clock.advance(MINUTE)
    const statuses = await Promise.all(
      [0, 1, 0, 1, 0, 1, 0, 1].flatMap((target, index) => {
        const [email, network] = [emails[target]!, 1 + (index % 3)]
        return [
          request(email, { network }),
          guess(email, otherThan(codes[target]!), { network }),
          guess(email, codes[target]!, { network }),
        ].map(async answer => (await answer).status)
      }),
    )
    for (const status of statuses) assert.ok([200, 422, 429].includes(status), String(status))
  }
})
