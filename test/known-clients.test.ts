import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { anotherApp, harness } from './support/app.ts'
import { otherThan, queuedCode, readPayload, signUp } from './support/scenario.ts'
import { strangers, WITH_BUDGETS } from './support/strangers.ts'

const MINUTE = 60_000

const h = harness(WITH_BUDGETS)
const { request, guess, ask } = strangers(h)

/** Returns an account whose waits are over. */
async function createAccount() {
  const user = await signUp(h)
  h.clock.advance(MINUTE)
  return user
}

describe('known clients', () => {
  test('the wait of a known client is separate from the wait of strangers', async () => {
    const { email, token } = await createAccount()
    assert.equal((await request(email)).status, 200)
    assert.equal((await request(email, { token })).status, 200)
    assert.deepEqual([(await request(email)).status, (await request(email, { token })).status], [429, 429])
  })

  test('a session gets five mails as a known client; its next request ends its code and counts as a stranger’s', async () => {
    const { email, token } = await createAccount()
    for (let mail = 0; mail < 5; mail += 1) {
      await ask(email, { token })
      h.clock.advance(MINUTE)
    }
    const last = await queuedCode(h, email, readPayload(token).sid)
    assert.equal((await guess(email, otherThan(last), { token })).status, 422)
    assert.equal((await request(email, { token })).status, 200)
    const rows = await h.database.sql`select session_id from sign_in_code where email = ${email}
      and expires_at > ${h.ctx.now()}`
    assert.deepEqual(rows, [{ session_id: null }])
    assert.equal((await request(email)).status, 429)
    assert.equal((await guess(email, await queuedCode(h, email), { token })).status, 200)
  })

  test('the sixth request of a session ends its code, even if it is refused because a stranger asked before', async () => {
    const { email, token } = await createAccount()
    for (let mail = 0; mail < 5; mail += 1) {
      h.clock.advance(MINUTE)
      await ask(email, { token })
    }
    await ask(email, { network: 7 })
    assert.equal((await request(email, { token })).status, 429)
    const rows = await h.database.sql`select id from sign_in_code where email = ${email} and session_id is not null`
    assert.deepEqual(rows, [])
  })

  test('the sixth request of a session gets a 503 like a stranger’s while too many mails wait', async () => {
    const { email, token } = await createAccount()
    const since = new Date(h.clock.now().getTime() + 3 * MINUTE)
    for (let mail = 0; mail < 5; mail += 1) {
      await ask(email, { token })
      h.clock.advance(MINUTE)
      if (mail < 3) continue
      await h.database.sql`
        insert into outbox (channel, class, network, created_at, due, payload)
        values ('mail', 2, '\\x01', ${since}, ${since}, '{}')`
      await h.ctx.mailBacklog.poll()
    }
    const last = await queuedCode(h, email, readPayload(token).sid)
    assert.equal((await request(email, { token })).status, 503)
    assert.equal((await guess(email, last, { token })).status, 200)
    await h.database.sql`delete from outbox`
    await h.ctx.mailBacklog.poll()
  })

  test('a success does not reset the mails that a session got as a known client', async () => {
    const { email, token } = await createAccount()
    for (let mail = 0; mail < 5; mail += 1) {
      assert.equal((await guess(email, await ask(email, { token }), { token })).status, 200)
      h.clock.advance(MINUTE)
    }
    await request(email, { token })
    assert.match(await queuedCode(h, email), /^\d{4}$/)
  })

  test('only the five newest sessions of an account are known clients, no matter how the newer ones ended', async () => {
    const { email, token } = await createAccount()
    const add = (end: string | null) => h.database.sql`
      insert into session (user_id, created_at, expires_at, issued_at, ended_at, end_reason)
      select user_id, ${h.ctx.now()}, ${h.ctx.now()}, ${h.ctx.now()}, ${end && h.ctx.now()}, ${end}
      from session where id = ${readPayload(token).sid}`
    for (const end of [null, 'logout', 'reuse', 'operator']) await add(end)
    assert.match(await ask(email, { token }), /^\d{4}$/)
    await add(null)
    h.clock.advance(MINUTE)
    await request(email, { token })
    const rows = await h.database.sql`
      select session_id from sign_in_code where email = ${email} and sent_at = ${h.ctx.now()}`
    assert.deepEqual(rows, [{ session_id: null }])
  })

  const isKnown = async (email: string, token: string) => {
    h.clock.advance(MINUTE)
    assert.equal((await request(email, { token })).status, 200)
    const [row] = await h.database.sql<{ session_id: string | null }>`
      select session_id from sign_in_code where email = ${email} order by sent_at desc limit 1`
    return row!.session_id !== null
  }

  test('an expired or logged-out session is a known client until it is 90 days old', async () => {
    const { email, token } = await createAccount()
    await h.call('POST', '/api/v1/auth/logout', { token })
    h.clock.advance(89 * 86_400_000)
    assert.equal(await isKnown(email, token), true)
    h.clock.advance(86_400_000)
    assert.equal(await isKnown(email, token), false)
  })

  test('a session that lasts longer than 90 days is a known client until it ends', async t => {
    const other = await anotherApp(h, { ...WITH_BUDGETS, SESSION_DAYS: '120' })
    t.after(other.close)
    const { email, token } = await signUp({ ...h, call: other.call })
    h.clock.advance(119 * 86_400_000)
    assert.equal(await isKnown(email, token), true)
    h.clock.advance(86_400_000)
    assert.equal(await isKnown(email, token), false)
  })

  test('a revoked session, a token of another account and an unusable token are no known clients', async () => {
    const { email, token } = await createAccount()
    const other = await signUp(h)
    await h.database.sql`update session set ended_at = now(), end_reason = 'reuse' where id = ${readPayload(token).sid}`
    for (const bad of [token, other.token, 'not.a.token']) assert.equal(await isKnown(email, bad), false)
  })

  const logouts: [string, unknown, Record<string, string>, boolean][] = [
    ['{"forget": true}', { forget: true }, {}, false],
    ['{"forget": false}', { forget: false }, {}, true],
    ['{"forget": "yes"}', { forget: 'yes' }, {}, true],
    ['a list', [true], {}, true],
    ['malformed JSON', '{"forget": tru', {}, true],
    ['another media type', '{"forget": true}', { 'content-type': 'text/plain' }, true],
    ['70 KiB', { forget: true, more: 'x'.repeat(70_000) }, {}, true],
    ['no body', undefined, {}, true],
  ]
  for (const [name, body, headers, staysKnown] of logouts) {
    test(`after a logout with ${name}, the client ${staysKnown ? 'stays known' : 'is a stranger'}`, async () => {
      const { email, token } = await createAccount()
      const answer = await h.call('POST', '/api/v1/auth/logout', { token, body, headers })
      assert.equal(answer.status, 200, answer.text)
      assert.equal(await isKnown(email, token), staysKnown)
    })
  }
})
