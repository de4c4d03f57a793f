// This file has one test for each sentence of the specification's chapter "Endpoints" that is about notifications.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { harness } from '../support/app.ts'
import { assertError } from '../support/endpoints.ts'
import { makeNotifications, makeUser } from '../support/factories.ts'

const h = harness()

const URL = '/api/v1/notifications'
const NOT_YOURS = { message: 'Cette notification ne vous appartient pas.', code: 'forbidden' }

const list = (token: string, query = '') => h.call('GET', `${URL}${query}`, { token })
const readIds = (answer: { body: any }): number[] => answer.body.data.map((one: { id: number }) => one.id)

/** Creates a user with notifications. `ids` is ordered from the newest to the oldest. */
async function makeOwner(count: number) {
  const user = await makeUser(h)
  return { ...user, ids: (await makeNotifications(h, user.id, count)).reverse() }
}

describe('GET /notifications', () => {
  test('"Returns the caller\'s notifications, newest first, paginated."', async () => {
    const [mine, other] = [await makeOwner(21), await makeOwner(1)]
    assert.deepEqual(readIds(await list(mine.token)), mine.ids.slice(0, 20))
    assert.deepEqual(readIds(await list(mine.token, '?page=2')), mine.ids.slice(20))
    assert.deepEqual(readIds(await list(other.token)), other.ids)
  })

  test('"Query parameter: `page` (integer, default 1)."', async () => {
    const { token } = await makeOwner(21)
    assert.equal((await list(token)).text, (await list(token, '?page=1')).text)
    assert.equal((await list(token, '?page=2')).body.meta.current_page, 2)
    for (const page of ['x', '1.5', '0', '-1', '1e1', '+1', '9007199254740992', '1&page=2']) {
      assertError(await list(token, `?page=${page}`), 422, 'validation_failed', 'page')
    }
  })

  test('"Success: 200 with `data` (array of Notification) and `meta` (Pagination meta)."', async () => {
    const { token } = await makeOwner(1)
    const answer = await list(token)
    assert.equal(answer.status, 200)
    assert.deepEqual(Object.keys(answer.body), ['data', 'meta'])
    assert.equal(answer.body.data.length, 1)
    assert.deepEqual(answer.body.meta, { current_page: 1, last_page: 1, per_page: 20, total: 1, unread_count: 1 })
  })

  test('"No valid token: 401 with body field `message` = "Unauthenticated.""', async () => {
    for (const token of [undefined, 'none', '']) {
      const answer = await h.call('GET', URL, { token, headers: { 'accept-language': 'en' } })
      assert.deepEqual([answer.status, answer.body], [401, { message: 'Unauthenticated.', code: 'unauthenticated' }])
    }
  })
})

describe('GET /notifications/unread-count', () => {
  test('"Success: 200 with `unread_count` (integer), the number of the caller\'s unread notifications."', async () => {
    const { token, ids } = await makeOwner(3)
    await makeOwner(1)
    await h.call('POST', `${URL}/${ids[0]}/read`, { token })
    const answer = await h.call('GET', `${URL}/unread-count`, { token })
    assert.deepEqual([answer.status, answer.body], [200, { unread_count: 2 }])
  })
})

describe('POST /notifications/{id}/read', () => {
  test('"Path parameter `id` (integer, notification identifier). No body."', async () => {
    const { token, ids } = await makeOwner(2)
    assert.equal((await h.call('POST', `${URL}/${ids[0]}/read`, { token })).body.data.id, ids[0])
    // If a client sends a body, the service ignores it.
    const headers = { 'content-type': 'text/plain' }
    assert.equal((await h.call('POST', `${URL}/${ids[1]}/read`, { token, body: '{', headers })).status, 200)
    assertError(await h.call('POST', `${URL}/one/read`, { token }), 404, 'not_found')
  })

  test('"Success: 200 with `data` holding the Notification, now with is_read true and read_at set."', async () => {
    const { token, ids } = await makeOwner(1)
    const [unread] = (await list(token)).body.data
    h.clock.set('2026-11-28T10:34:56.789Z')
    const answer = await h.call('POST', `${URL}/${ids[0]}/read`, { token })
    assert.equal(answer.status, 200)
    assert.deepEqual(answer.body, { data: { ...unread, is_read: true, read_at: '2026-11-28T10:34:56+00:00' } })
  })

  test('"When the notification belongs to another user: an error with `message` = "Cette notification ne vous appartient pas."', async () => {
    const [{ ids, token }, stranger] = [await makeOwner(1), await makeUser(h)]
    const headers = { 'accept-language': 'en' }
    const answer = await h.call('POST', `${URL}/${ids[0]}/read`, { token: stranger.token, headers })
    assert.deepEqual(answer.body, NOT_YOURS)
    assert.equal((await list(token)).body.data[0].is_read, false)
  })

  test('open question: "its status code": marking a notification of another user as read is answered with 403', async () => {
    const [{ ids }, stranger] = [await makeOwner(1), await makeUser(h)]
    const answer = await h.call('POST', `${URL}/${ids[0]}/read`, { token: stranger.token })
    assert.equal(answer.status, 403)
  })

  test('open question: "Response for an identifier that does not exist": the request gets 404', async () => {
    const { token } = await makeUser(h)
    const answer = await h.call('POST', `${URL}/999999/read`, { token })
    assert.deepEqual([answer.status, answer.body], [404, { message: 'Introuvable.', code: 'not_found' }])
  })
})

describe('POST /notifications/read-all', () => {
  test('"No body. Marks all of the caller\'s unread notifications as read."', async () => {
    const [mine, other] = [await makeOwner(21), await makeOwner(1)]
    await h.call('POST', `${URL}/read-all`, { token: mine.token })
    assert.equal((await list(mine.token)).body.meta.unread_count, 0)
    assert.equal((await list(other.token)).body.meta.unread_count, 1)
  })

  test('"Success: 200 with `message` (string, a confirmation that all were marked read) and `count` (integer, number of notifications marked)."', async () => {
    const { token, ids } = await makeOwner(3)
    await h.call('POST', `${URL}/${ids[0]}/read`, { token })
    const answer = await h.call('POST', `${URL}/read-all`, { token })
    const message = 'Les notifications ont été marquées comme lues.'
    assert.deepEqual([answer.status, answer.body], [200, { message, count: 2 }])
    assert.deepEqual((await h.call('POST', `${URL}/read-all`, { token })).body, { message, count: 0 })
  })
})

describe('DELETE /notifications/{id}', () => {
  test('"Path parameter `id` (integer). Only the owner may delete."', async () => {
    const [{ ids, token }, stranger] = [await makeOwner(2), await makeUser(h)]
    assert.equal((await h.call('DELETE', `${URL}/${ids[0]}`)).status, 401)
    assert.equal((await h.call('DELETE', `${URL}/${ids[0]}`, { token: stranger.token })).status, 403)
    assertError(await h.call('DELETE', `${URL}/one`, { token }), 404, 'not_found')
    assert.deepEqual(readIds(await list(token)), ids)
    assert.equal((await h.call('DELETE', `${URL}/${ids[0]}`, { token })).status, 200)
    assert.deepEqual(readIds(await list(token)), ids.slice(1))
  })

  test('"Success: 200 with `message` (string, confirmation of deletion)."', async () => {
    const { token, ids } = await makeOwner(1)
    const answer = await h.call('DELETE', `${URL}/${ids[0]}`, { token })
    assert.deepEqual([answer.status, answer.body], [200, { message: 'La notification a été supprimée.' }])
  })

  test('"When the notification belongs to another user: `message` = "Cette notification ne vous appartient pas."', async () => {
    const [{ ids }, stranger] = [await makeOwner(1), await makeUser(h)]
    const headers = { 'accept-language': 'en' }
    const answer = await h.call('DELETE', `${URL}/${ids[0]}`, { token: stranger.token, headers })
    assert.deepEqual([answer.status, answer.body], [403, NOT_YOURS])
  })
})
