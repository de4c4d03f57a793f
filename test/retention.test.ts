import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { prune } from '../src/retention.ts'
import { harness } from './support/app.ts'
import { waitsForLock } from './support/database.ts'
import { makeNotifications, makeUser } from './support/factories.ts'
import { newEmail, profile, signUp } from './support/scenario.ts'
import { waitUntil } from './support/wait-until.ts'

const h = harness()

const DAY_MS = 86_400_000
const DEFAULTS = { retentionReadDays: 90, retentionDays: 365 }

function pruneNow(config = DEFAULTS) {
  return prune(h.database.sql, config, h.clock.now())
}

describe('notifications', () => {
  test('prune deletes read notifications after 90 days and all notifications after 365 days, and a limit of 0 keeps the notifications', async () => {
    const user = await makeUser(h)
    const ids = await makeNotifications(h, user.id, 2_500)
    await h.database
      .sql`update notification set read_at = now() where user_id = ${user.id} and id = any(${ids.slice(0, 1_500)})`
    const listRemaining = async () =>
      (await h.database.sql`select id from notification where user_id = ${user.id}`).length
    h.clock.advance(90 * DAY_MS)
    assert.equal((await pruneNow()).notification, 0)
    h.clock.advance(1)
    const fresh = await makeNotifications(h, user.id, 10)
    assert.equal((await pruneNow({ retentionReadDays: 0, retentionDays: 365 })).notification, 0)
    assert.equal((await pruneNow()).notification, 1_500)
    assert.equal(await listRemaining(), 1_010)
    h.clock.advance(275 * DAY_MS)
    assert.equal((await pruneNow({ retentionReadDays: 90, retentionDays: 0 })).notification, 0)
    assert.equal((await pruneNow()).notification, 1_000)
    assert.equal(await listRemaining(), fresh.length)
  })
})

test('prune deletes counters of the throttle whose window is over or begins more than 60 s in the future', async () => {
  const now = h.clock.now().getTime()
  await h.database.sql`delete from throttle`
  for (const [key, end] of [
    ['over', now - 1],
    ['running', now + 60_000],
    ['ahead for a moment', now + 119_000],
    ['ahead', now + 121_000],
  ] as const) {
    await h.database.sql`insert into throttle (key, points, expire) values (${key}, 1, ${end})`
  }
  await pruneNow()
  const rows = await h.database.sql<{ key: string }>`select key from throttle order by expire`
  assert.deepEqual(
    rows.map(({ key }) => key),
    ['running', 'ahead for a moment'],
  )
})

describe('codes', () => {
  test('prune does not delete an address to which a concurrent request sends a code', async () => {
    const email = newEmail()
    await h.call('POST', '/api/v1/auth/request-otp', { body: { email } })
    h.clock.advance(7 * DAY_MS)
    await h.database.sql`delete from sign_in_code where email = ${email}`
    const pruned = await h.database.sql.begin(async tx => {
      await tx`update sign_in_address set sent_at = ${h.clock.now()} where email = ${email}`
      // The statement that waits must not delay those of the test.
      const pruned = prune(h.ctx.sql, DEFAULTS, h.clock.now())
      await waitUntil(() => waitsForLock(h.database.sql, 'delete from sign_in_address'))
      return { pruned }
    })
    await pruned.pruned
    assert.deepEqual(await listAddresses([email]), [email])
  })

  const listAddresses = async (emails: string[]) =>
    (
      await h.database.sql<{ email: string }>`
        select email from sign_in_address where email = any(${emails}::text[]) order by 1`
    ).map(({ email }) => email)

  test('prune deletes a code 7 days after its last mail, and then its address, unless its budget is not full', async () => {
    const [idle, guessed] = [newEmail(), newEmail()].sort() as [string, string]
    for (const email of [idle, guessed]) await h.call('POST', '/api/v1/auth/request-otp', { body: { email } })
    const inDays = (days: number) => new Date(h.clock.now().getTime() + days * DAY_MS)
    await h.database.sql`update sign_in_address set guesses_full_at = ${inDays(9)} where email = ${guessed}`
    h.clock.advance(7 * DAY_MS - 1)
    assert.equal((await pruneNow()).sign_in_code, 0)
    assert.deepEqual(await listAddresses([idle, guessed]), [idle, guessed])
    h.clock.advance(1)
    assert.ok((await pruneNow()).sign_in_code >= 2)
    assert.deepEqual(await listAddresses([idle, guessed]), [guessed])
    h.clock.advance(2 * DAY_MS)
    await pruneNow()
    assert.deepEqual(await listAddresses([idle, guessed]), [])
  })

  test('prune deletes the names of a sign-up when it is not pending any more, and keeps its count of mails', async () => {
    const email = newEmail()
    await h.call('POST', '/api/v1/auth/request-otp', { body: profile(email) })
    const read = () =>
      h.database.sql`select purpose, first_name, last_name, mails from sign_in_code where email = ${email}`
    h.clock.advance(3_599_999)
    await pruneNow()
    assert.deepEqual(await read(), [{ purpose: 'sign_up', first_name: 'Marie', last_name: 'Durand', mails: 1 }])
    h.clock.advance(1)
    await pruneNow()
    assert.deepEqual(await read(), [{ purpose: 'decoy', first_name: null, last_name: null, mails: 1 }])
  })

  test('prune deletes a network when its budget is full and its windows are over', async () => {
    const now = h.clock.now()
    const rows: [string, Date | null, Date | null][] = [
      ['\\x01', new Date(now.getTime() + 1), null],
      ['\\x02', now, new Date(now.getTime() - DAY_MS + 1)],
      ['\\x03', now, new Date(now.getTime() - DAY_MS)],
      ['\\x04', null, null],
    ]
    for (const [network, fullAt, since] of rows) {
      await h.database.sql`
        insert into sign_in_network (network, guesses_full_at, guesses_since)
        values (${network}::bytea, ${fullAt}, ${since})`
    }
    assert.equal((await pruneNow()).sign_in_network, 2)
    const left = await h.database.sql<{ network: Buffer }>`select network from sign_in_network order by 1`
    assert.deepEqual(
      left.map(({ network }) => network[0]),
      [1, 2],
    )
  })
})

describe('sessions, counters and events', () => {
  test('prune deletes a session 90 days after its end, by time or by a logout', async () => {
    const [loggedOut, over] = [await signUp(h), await signUp(h)]
    assert.equal((await h.call('POST', '/api/v1/auth/logout', { token: loggedOut.token })).status, 200)
    const listEmails = async () => {
      await pruneNow()
      const left = await h.database.sql<{ email: string }>`
        select email from session join app_user on app_user.id = user_id order by email`
      return left.map(({ email }) => email)
    }
    h.clock.advance(90 * DAY_MS - 1)
    const { email } = await signUp(h)
    assert.deepEqual(await listEmails(), [loggedOut.email, over.email, email].sort())
    h.clock.advance(1)
    assert.deepEqual(await listEmails(), [over.email, email].sort())
    h.clock.advance(7 * DAY_MS - 1)
    assert.deepEqual(await listEmails(), [over.email, email].sort())
    h.clock.advance(1)
    assert.deepEqual(await listEmails(), [email])
  })

  test('prune deletes throttle counters after the end of their window, and event records after 90 days', async () => {
    h.clock.advance(60_001)
    await pruneNow()
    await h.call('POST', '/api/v1/auth/verify-otp', { body: {}, remoteAddress: '192.0.2.77' })
    await h.database.sql`
      insert into event (key, digest, type, received_at) values ('\\x01', '\\x02', 'game_full', ${h.clock.now()})`
    await pruneNow()
    const countRows = async () => [
      (await h.database.sql`select key from throttle`).length,
      (await h.database.sql`select key from event`).length,
    ]
    // One counter counts the client, and another counts its network.
    assert.deepEqual(await countRows(), [2, 1])
    h.clock.advance(60_001)
    await pruneNow()
    assert.deepEqual(await countRows(), [0, 1])
    h.clock.advance(90 * DAY_MS)
    await pruneNow()
    assert.deepEqual(await countRows(), [0, 0])
  })
})

test('two concurrent runs of prune delete each row exactly once, and keep rows that are inserted meanwhile', async () => {
  const user = await makeUser(h)
  await makeNotifications(h, user.id, 3_000)
  h.clock.advance(366 * DAY_MS)
  const [one, two, fresh] = await Promise.all([pruneNow(), pruneNow(), makeNotifications(h, user.id, 500)])
  assert.equal(one.notification + two.notification, 3_000)
  const left = await h.database.sql`select id from notification where user_id = ${user.id}`
  assert.equal(left.length, fresh.length)
})
