import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { timestamp } from '../src/http/format/timestamp.ts'
import { belongsToOther, markRead } from '../src/notifications/notifications.ts'
import { harness } from './support/app.ts'
import { waitsForLock } from './support/database.ts'
import { makeNotifications, makeUser } from './support/factories.ts'
import { ODD_IDS } from './support/odd-ids.ts'
import { countStatements } from './support/statements.ts'
import { waitUntil } from './support/wait-until.ts'

const h = harness()

function read(token: string | undefined, id: unknown, language = 'fr') {
  return h.call('POST', `/api/v1/notifications/${id}/read`, { token, headers: { 'accept-language': language } })
}

describe('200: marking a notification as read', () => {
  test('marking a notification as read sets is_read and read_at, and a second request returns the same bytes', async () => {
    const user = await makeUser(h)
    const [id, untouched] = await makeNotifications(h, user.id, 2)
    h.clock.advance(1_000)
    const readAt = `${h.clock.now().toISOString().slice(0, 19)}+00:00`
    const first = await read(user.token, id)
    assert.equal(first.status, 200)
    assert.deepEqual(Object.keys(first.body), ['data'])
    assert.deepEqual([first.body.data.id, first.body.data.is_read, first.body.data.read_at], [id, true, readAt])
    h.clock.advance(60_000)
    assert.equal((await read(user.token, id)).text, first.text)
    const unread = await h.database.sql`select id from notification where user_id = ${user.id} and read_at is null`
    assert.deepEqual(unread, [{ id: untouched }])
  })

  test('marking a notification as read for the second time writes no row', async () => {
    const user = await makeUser(h)
    const [id] = await makeNotifications(h, user.id, 1)
    await read(user.token, id)
    const version = () => h.database.sql`select xmin::text, xmax::text from notification where id = ${id}`
    const before = await version()
    assert.equal((await read(user.token, id)).status, 200)
    assert.deepEqual(await version(), before)
  })

  test('marking a notification as read takes one statement, whether the notification was read or unread before', async () => {
    const user = await makeUser(h)
    const [id] = await makeNotifications(h, user.id, 1)
    // This request puts the user’s session into the cache. So the counted requests need no statement for the session.
    await h.call('GET', '/api/v1/notifications/unread-count', { token: user.token })
    for (const _ of ['unread', 'read']) assert.equal(await countStatements(h.ctx, () => read(user.token, id)), 1)
  })

  test('if two concurrent requests mark a notification as read, both answers contain the same read_at', async () => {
    const user = await makeUser(h)
    const [id] = await makeNotifications(h, user.id, 1)
    const first = h.clock.now()
    h.clock.advance(60_000)
    let late: ReturnType<typeof read>
    await h.database.sql.begin(async tx => {
      await markRead(tx, user.id, id!, first)
      late = read(user.token, id)
      await waitUntil(() => waitsForLock(h.database.sql))
    })
    const { status, body } = await late!
    assert.deepEqual([status, body.data.is_read, body.data.read_at], [200, true, timestamp(first)])
  })

  test('the body of a request to mark a notification as read is ignored', async () => {
    const user = await makeUser(h)
    const [id] = await makeNotifications(h, user.id, 1)
    const answer = await h.call('POST', `/api/v1/notifications/${id}/read`, {
      token: user.token,
      body: 'not json',
      headers: { 'content-type': 'text/plain' },
    })
    assert.equal(answer.status, 200)
  })
})

describe('401: marking a notification as read', () => {
  test('a request without a token to mark a notification as read gets 401, whether or not the notification exists', async () => {
    const user = await makeUser(h)
    const [id] = await makeNotifications(h, user.id, 1)
    for (const any of [id, 999_999_999]) {
      assert.deepEqual((await read(undefined, any)).body, { message: 'Unauthenticated.', code: 'unauthenticated' })
    }
  })
})

describe('403: marking a notification as read', () => {
  for (const language of ['fr', 'en', 'de', '*']) {
    test(`a request to mark another user’s notification as read gets a 403 in French, even with Accept-Language ${language}`, async () => {
      const user = await makeUser(h)
      const other = await makeUser(h)
      const [id] = await makeNotifications(h, other.id, 1)
      const before = await h.database.sql`select * from notification where id = ${id}`
      const answer = await read(user.token, id, language)
      const refused = { message: 'Cette notification ne vous appartient pas.', code: 'forbidden' }
      assert.deepEqual([answer.status, answer.body], [403, refused])
      assert.deepEqual(await h.database.sql`select * from notification where id = ${id}`, before)
      await read(other.token, id)
      assert.deepEqual((await read(user.token, id, language)).body, refused)
    })
  }

  test('`belongsToOther` returns false for the caller’s notification and true for another user’s notification', async () => {
    const user = await makeUser(h)
    const other = await makeUser(h)
    const [id] = await makeNotifications(h, user.id, 1)
    assert.equal(await belongsToOther(h.database.sql, user.id, id!), false)
    assert.equal(await belongsToOther(h.database.sql, other.id, id!), true)
  })
})

describe('404: marking a notification as read', () => {
  for (const id of ODD_IDS) {
    test(`a request to mark a notification with the id ${id.slice(0, 40)} as read gets 404`, async () => {
      const user = await makeUser(h)
      await makeNotifications(h, user.id, 1)
      const answer = await read(user.token, id)
      assert.deepEqual([answer.status, answer.body], [404, { message: 'Introuvable.', code: 'not_found' }])
      assert.equal((await read(user.token, id, 'en')).body.message, 'Not found.')
      const unread = await h.database.sql`select id from notification where user_id = ${user.id} and read_at is null`
      assert.equal(unread.length, 1)
    })
  }
})
