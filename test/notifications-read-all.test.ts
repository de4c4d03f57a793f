import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { harness } from './support/app.ts'
import { makeNotifications, makeUser } from './support/factories.ts'

const h = harness()

function readAll(token: string | undefined, body?: unknown, headers: Record<string, string> = {}) {
  return h.call('POST', '/api/v1/notifications/read-all', { token, headers, ...(body !== undefined && { body }) })
}

async function countUnread(userId: number): Promise<number> {
  return (await h.database.sql`select id from notification where user_id = ${userId} and read_at is null`).length
}

describe('200: marking all notifications as read', () => {
  const texts = [
    ['fr', 'Les notifications ont été marquées comme lues.'],
    ['en', 'The notifications were marked as read.'],
  ] as const
  for (const [language, message] of texts) {
    test(`read-all marks the caller’s unread notifications as read, and returns their number and a message in ${language}`, async () => {
      const user = await makeUser(h)
      const other = await makeUser(h)
      const ids = await makeNotifications(h, user.id, 5)
      await makeNotifications(h, other.id, 2)
      await h.call('POST', `/api/v1/notifications/${ids[1]}/read`, { token: user.token })
      const answer = await readAll(user.token, undefined, { 'accept-language': language })
      assert.deepEqual([answer.status, answer.body], [200, { message, count: 4 }])
      assert.equal((await readAll(user.token)).body.count, 0)
      assert.equal(await countUnread(user.id), 0)
      assert.equal(await countUnread(other.id), 2)
    })
  }

  test('read-all does not change the read_at of a notification that is already read', async () => {
    const user = await makeUser(h)
    const [id] = await makeNotifications(h, user.id, 2)
    const first = await h.call('POST', `/api/v1/notifications/${id}/read`, { token: user.token })
    h.clock.advance(60_000)
    await readAll(user.token)
    const again = await h.call('POST', `/api/v1/notifications/${id}/read`, { token: user.token })
    assert.equal(again.text, first.text)
  })

  const all: [string, unknown, Record<string, string>?][] = [
    ['no body', undefined],
    ['an empty body of another media type', '', { 'content-type': 'text/plain' }],
    ['an empty object', {}],
    ['null as ids', { ids: null }],
    ['only unknown members in the body', { id: [1] }],
  ]
  for (const [what, body, headers] of all) {
    test(`read-all with ${what} marks all notifications as read`, async () => {
      const user = await makeUser(h)
      await makeNotifications(h, user.id, 3)
      assert.equal((await readAll(user.token, body, headers)).body.count, 3)
    })
  }

  test('read-all with ids marks only the caller’s notifications with these ids as read', async () => {
    const user = await makeUser(h)
    const other = await makeUser(h)
    const ids = await makeNotifications(h, user.id, 4)
    const [foreign] = await makeNotifications(h, other.id, 1)
    assert.equal((await readAll(user.token, { ids: [ids[0], ids[0], ids[2], foreign, 999_999_999] })).body.count, 2)
    assert.equal((await readAll(user.token, { ids: [ids[0], ids[1]] })).body.count, 1)
    assert.equal(await countUnread(user.id), 1)
    assert.equal(await countUnread(other.id), 1)
  })

  test('read-all with an empty list of ids marks no notification as read', async () => {
    const user = await makeUser(h)
    await makeNotifications(h, user.id, 2)
    assert.equal((await readAll(user.token, { ids: [] })).body.count, 0)
    assert.equal(await countUnread(user.id), 2)
  })

  test('read-all accepts 100 ids', async () => {
    const user = await makeUser(h)
    const ids = await makeNotifications(h, user.id, 101)
    assert.equal((await readAll(user.token, { ids: ids.slice(0, 100) })).body.count, 100)
    assert.equal(await countUnread(user.id), 1)
  })
})

test('read-all without a token gets 401', async () => {
  assert.equal((await readAll(undefined)).status, 401)
})

test('read-all with a media type other than JSON gets 415 and marks no notification as read', async () => {
  const user = await makeUser(h)
  await makeNotifications(h, user.id, 1)
  assert.equal((await readAll(user.token, 'ids=1', { 'content-type': 'text/plain' })).status, 415)
  assert.equal(await countUnread(user.id), 1)
})

describe('422: marking all notifications as read', () => {
  const bad: [string, unknown, RegExp][] = [
    ...['x', 1, true, { 0: 1 }, ['1'], [1.5], [0], [-1], [null], [[1]], [2 ** 53]].map(
      (ids): [string, unknown, RegExp] => [`ids ${JSON.stringify(ids)}`, { ids }, /^ids/],
    ),
    ['101 ids', { ids: Array.from({ length: 101 }, (_, index) => index + 1) }, /^ids$/],
    ['a list as the body', [1], /^body$/],
    ['a truncated body', '{"ids": [1', /^body$/],
  ]
  for (const [what, body, field] of bad) {
    test(`read-all with ${what} gets 422 and marks no notification as read`, async () => {
      const user = await makeUser(h)
      await makeNotifications(h, user.id, 1)
      const answer = await readAll(user.token, typeof body === 'string' ? body : JSON.stringify(body))
      assert.equal(answer.status, 422, answer.text)
      assert.match(Object.keys(answer.body.errors)[0]!, field)
      assert.equal(await countUnread(user.id), 1)
    })
  }
})
