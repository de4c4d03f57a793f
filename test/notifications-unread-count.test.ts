import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { harness } from './support/app.ts'
import { makeNotifications, makeUser } from './support/factories.ts'

const h = harness()

function count(token?: string) {
  return h.call('GET', '/api/v1/notifications/unread-count', { token })
}

describe('200: the unread count', () => {
  test('the unread count is the number of the caller’s unread notifications, and the answer has no other member', async () => {
    const user = await makeUser(h)
    const other = await makeUser(h)
    assert.deepEqual((await count(user.token)).body, { unread_count: 0 })
    const ids = await makeNotifications(h, user.id, 5)
    await makeNotifications(h, other.id, 2)
    await h.call('POST', `/api/v1/notifications/${ids[0]}/read`, { token: user.token })
    await h.call('DELETE', `/api/v1/notifications/${ids[1]}`, { token: user.token })
    const answer = await count(user.token)
    assert.deepEqual([answer.status, answer.body], [200, { unread_count: 3 }])
    assert.deepEqual((await count(other.token)).body, { unread_count: 2 })
  })
})

describe('401: the unread count', () => {
  test('a request for the unread count without a token is refused', async () => {
    assert.deepEqual((await count()).body, { message: 'Unauthenticated.', code: 'unauthenticated' })
  })
})
