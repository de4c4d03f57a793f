import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { harness } from './support/app.ts'
import { newEmail, profile, signUp } from './support/scenario.ts'
import { strangers, WITH_BUDGETS } from './support/strangers.ts'

const MINUTE = 60_000

const h = harness(WITH_BUDGETS)
const { request, guess, ask, miss } = strangers(h)

/** Returns an account whose waits are over. */
async function createAccount() {
  const user = await signUp(h)
  h.clock.advance(MINUTE)
  return user
}

/** Requests a code that must differ from the given codes. The chance of equal codes is small, but not zero. */
async function askFor(body: object | string, network: number, others: string[]): Promise<string> {
  const code = await ask(body, { network })
  return others.includes(code) ? assert.fail('two equal codes by chance; run the test again') : code
}

describe('with which codes a guess is compared', () => {
  test('each network has its own code for an address, and each code opens a session from its own network', async () => {
    const { email } = await createAccount()
    const codes = [await ask(email, { network: 1 })]
    for (const network of [2, 3]) {
      h.clock.advance(MINUTE)
      codes.push(await askFor(email, network, codes))
    }
    assert.equal((await guess(email, codes[0]!, { network: 1 })).status, 200)
  })

  test('a guess is also compared with the code that was mailed last to another network, and with no earlier one', async () => {
    const { email } = await createAccount()
    const first = await ask(email, { network: 1 })
    h.clock.advance(MINUTE)
    const second = await askFor(email, 2, [first])
    assert.equal((await guess(email, first, { network: 3 })).status, 422)
    assert.equal((await guess(email, second, { network: 3 })).status, 200)
  })

  test('a caller who has an older code can use the code that was mailed last to another network', async () => {
    const { email } = await createAccount()
    const own = await ask(email, { network: 1 })
    h.clock.advance(MINUTE)
    const other = await askFor(email, 2, [own])
    assert.equal((await guess(email, other, { network: 1 })).status, 200)
  })

  test('a caller who has the newest code can use the code that was mailed last to another network', async () => {
    const { email } = await createAccount()
    const other = await ask(email, { network: 2 })
    h.clock.advance(MINUTE)
    await askFor(email, 1, [other])
    assert.equal((await guess(email, other, { network: 1 })).status, 200)
  })

  test('two of the five attempts at a code are open to other networks, and three are left for the requester', async () => {
    const { email } = await createAccount()
    const code = await ask(email, { network: 1 })
    for (let network = 2; network < 8; network += 1) await miss(email, code, 1, { network })
    assert.equal((await guess(email, code, { network: 9 })).status, 422)
    await miss(email, code, 2, { network: 1 })
    assert.equal((await guess(email, code, { network: 1 })).status, 200)
  })

  test('when the open attempts at the last code are spent, a guess is compared with no earlier code of another network', async () => {
    const { email } = await createAccount()
    const first = await ask(email, { network: 1 })
    h.clock.advance(MINUTE)
    const second = await askFor(email, 2, [first])
    await miss(email, second, 2, { network: 3 })
    assert.equal((await guess(email, second, { network: 3 })).status, 422)
    assert.equal((await guess(email, first, { network: 3 })).status, 422)
    assert.equal((await guess(email, first, { network: 1 })).status, 200)
  })

  test('a stranger can use the code that was mailed to a known client, and the known client can use a stranger’s code', async () => {
    const { email, token } = await createAccount()
    const known = await ask(email, { token })
    assert.equal((await guess(email, known, { network: 7 })).status, 200)
    h.clock.advance(MINUTE)
    const strange = await ask(email, { network: 8 })
    assert.equal((await guess(email, strange, { network: 9, token })).status, 200)
  })

  test('a code of a sign-up counts for other networks only if they have no live code', async () => {
    const email = newEmail()
    const decoy = await ask(email, { network: 1 })
    h.clock.advance(1)
    const signUpCode = await askFor(profile(email), 2, [decoy])
    assert.equal((await guess(email, signUpCode, { network: 1 })).status, 422)
    assert.equal((await guess(email, signUpCode, { network: 3 })).body.is_new_user, true)
  })

  test('a success ends all codes of the address', async () => {
    const { email, token } = await createAccount()
    const known = await ask(email, { token })
    const first = await askFor(email, 1, [known])
    h.clock.advance(MINUTE)
    const second = await askFor(email, 2, [known, first])
    assert.equal((await guess(email, second, { network: 2 })).status, 200)
    assert.equal((await guess(email, first, { network: 1 })).status, 422)
    assert.equal((await guess(email, known, { token })).status, 422)
    assert.equal((await guess(email, second, { network: 2 })).status, 422)
  })

  test('callers of every network can use a code that a process of the previous version stored, within five attempts', async () => {
    const { email } = await createAccount()
    const id = crypto.randomUUID()
    const store = (code: string) => h.database.sql`
      insert into sign_in_code (id, email, purpose, mac, sent_at, expires_at)
      values (${id}, ${email}, 'sign_in', ${h.ctx.keys.mac(id, code)}, ${h.ctx.now()},
        ${new Date(h.ctx.now().getTime() + 15 * MINUTE)})`
    await store('4921')
    for (let network = 1; network <= 4; network += 1) await miss(email, '4921', 1, { network })
    assert.equal((await guess(email, '4921', { network: 5 })).status, 200)
  })
})

describe('a repeated request', () => {
  const findId = async (email: string) =>
    (await h.database.sql<{ id: string }>`select id from sign_in_code where email = ${email} order by sent_at desc`)[0]!
      .id

  test('within ten minutes a request repeats the code, with the same id, 15 more minutes and five more attempts', async () => {
    const { email } = await createAccount()
    const code = await ask(email)
    const id = await findId(email)
    await miss(email, code, 4)
    h.clock.advance(10 * MINUTE - 1)
    assert.equal(await ask(email), code)
    assert.equal(await findId(email), id)
    await miss(email, code, 4)
    h.clock.advance(15 * MINUTE - 1)
    assert.equal((await guess(email, code)).status, 200)
  })

  test('ten minutes after the first request, and after five attempts, a request makes a new code', async () => {
    const reasons: ((email: string, code: string) => Promise<void>)[] = [
      async () => h.clock.advance(10 * MINUTE),
      async (email, code) => {
        await miss(email, code, 5)
        h.clock.advance(MINUTE)
      },
    ]
    for (const reason of reasons) {
      const { email } = await createAccount()
      const code = await ask(email)
      const id = await findId(email)
      await reason(email, code)
      await ask(email)
      assert.notEqual(await findId(email), id)
    }
  })

  test('a request with another name or another purpose makes a new code, and the previous code opens no session', async () => {
    const email = newEmail()
    const first = await ask(profile(email))
    const id = await findId(email)
    h.clock.advance(MINUTE)
    const second = await ask({ ...profile(email), first_name: 'Paul' })
    assert.notEqual(await findId(email), id)
    if (first !== second) assert.equal((await guess(email, first)).status, 422)
    assert.equal((await guess(email, second)).status, 200)
    const [user] = await h.database.sql`select first_name from app_user where email = ${email}`
    assert.equal(user!.first_name, 'Paul')
  })

  test('a request for a pending sign-up with the same names, or with the address alone, repeats the code', async () => {
    const email = newEmail()
    const code = await ask(profile(email))
    h.clock.advance(MINUTE)
    assert.equal(await ask(profile(email)), code)
    h.clock.advance(MINUTE)
    assert.equal(await ask(email), code)
  })

  test('a request while the first mail waits in the queue adds no second mail and leaves the first one as it is', async () => {
    const { email } = await createAccount()
    await ask(email)
    // A worker has tried the mail twice, and has deferred it.
    await h.database.sql`
      update outbox set attempts = 2, ready = false, due = due + interval '5 minutes'
      where code_id = ${await findId(email)}`
    const readMails = async () => h.database.sql`select * from outbox where code_id = ${await findId(email)}`
    const before = await readMails()
    h.clock.advance(MINUTE)
    await ask(email)
    assert.equal(before.length, 1)
    assert.deepEqual(await readMails(), before)
  })

  test('a request after the first mail has left adds a mail with the same code', async () => {
    const { email } = await createAccount()
    const code = await ask(email)
    const takeMails = async () =>
      h.database.sql<{ sealed: string }>`
        delete from outbox where code_id = ${await findId(email)} returning payload ->> 'sealed' as sealed`
    await takeMails()
    h.clock.advance(MINUTE)
    await ask(email)
    const mails = await takeMails()
    assert.deepEqual([mails.length, h.ctx.keys.open(await findId(email), mails[0]!.sealed)], [1, code])
  })
})

describe('a pending sign-up', () => {
  test('a pending sign-up of another network is not resumed: for this network, the address is unknown', async () => {
    const email = newEmail()
    await ask({ ...profile(email), first_name: 'Mallory' }, { network: 1 })
    h.clock.advance(MINUTE)
    assert.equal((await request(email, { network: 2 })).status, 200)
    const rows = await h.database.sql`select purpose from sign_in_code where email = ${email} order by purpose`
    assert.deepEqual(rows, [{ purpose: 'decoy' }, { purpose: 'sign_up' }])
  })

  test('after another network has created the account, a request with the address alone is a sign-in', async () => {
    const email = newEmail()
    const strange = await ask(profile(email), { network: 1 })
    h.clock.advance(MINUTE)
    assert.equal((await guess(email, await askFor(profile(email), 2, [strange]), { network: 2 })).status, 200)
    h.clock.advance(MINUTE)
    await ask(email, { network: 1 })
    const [code] = await h.database.sql`
      select purpose from sign_in_code where email = ${email} order by sent_at desc limit 1`
    assert.deepEqual(code, { purpose: 'sign_in' })
  })

  test('the account gets the profile of the code that was typed, and accepts the terms at that moment', async () => {
    const email = newEmail()
    const strange = await ask({ ...profile(email), first_name: 'Mallory' }, { network: 1 })
    h.clock.advance(MINUTE)
    const own = await askFor(profile(email), 2, [strange])
    h.clock.advance(5 * MINUTE)
    assert.equal((await guess(email, own, { network: 2 })).body.is_new_user, true)
    const [user] = await h.database.sql`select first_name, terms_accepted_at from app_user where email = ${email}`
    assert.deepEqual(user, { first_name: 'Marie', terms_accepted_at: h.ctx.now() })
    assert.equal((await guess(email, strange, { network: 1 })).status, 422)
  })
})

test('a sign-in and then a sign-up get the same answers, whether another network’s sign-up is pending or not', async () => {
  const [pending, fresh] = [newEmail(), newEmail()]
  await ask(profile(pending), { network: 1 })
  h.clock.advance(MINUTE)
  for (const email of [pending, fresh]) {
    const answers = [await request(email, { network: 2 }), await request(profile(email), { network: 2 })]
    assert.deepEqual(
      answers.map(({ status, headers }) => [status, headers['retry-after']]),
      [
        [200, '60'],
        [200, '60'],
      ],
    )
  }
})
