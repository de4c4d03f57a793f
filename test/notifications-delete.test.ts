import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { harness } from './support/app.ts'
import { makeNotifications, makeUser } from './support/factories.ts'
import { ODD_IDS } from './support/odd-ids.ts'

const h = harness()

const UNKNOWN = { message: 'Introuvable.', code: 'not_found' }

function remove(token: string | undefined, id: unknown, language = 'fr') {
  return h.call('DELETE', `/api/v1/notifications/${id}`, { token, headers: { 'accept-language': language } })
}

async function readIds(userId: number) {
  return (await h.database.sql`select id from notification where user_id = ${userId} order by id`).map(row => row.id)
}

describe('200: deleting a notification', () => {
  const texts = [
    ['fr', 'La notification a été supprimée.'],
    ['en', 'The notification was deleted.'],
  ] as const
  for (const [language, message] of texts) {
    test(`a delete request removes only the given notification, read or unread, and is answered in ${language}`, async () => {
      const user = await makeUser(h)
      const ids = await makeNotifications(h, user.id, 3)
      await h.call('POST', `/api/v1/notifications/${ids[0]}/read`, { token: user.token })
      for (const id of ids.slice(0, 2)) {
        const answer = await remove(user.token, id, language)
        assert.deepEqual([answer.status, answer.body], [200, { message }])
      }
      assert.deepEqual(await readIds(user.id), ids.slice(2))
    })
  }
})

describe('401: deleting a notification', () => {
  test('a delete request without a token gets 401, and the notification stays', async () => {
    const user = await makeUser(h)
    const ids = await makeNotifications(h, user.id, 1)
    assert.equal((await remove(undefined, ids[0])).status, 401)
    assert.deepEqual(await readIds(user.id), ids)
  })
})

describe('403: deleting a notification', () => {
  for (const language of ['fr', 'en']) {
    test(`a request to delete another user’s notification gets a 403 in French, even with Accept-Language ${language}`, async () => {
      const user = await makeUser(h)
      const other = await makeUser(h)
      const ids = await makeNotifications(h, other.id, 1)
      const answer = await remove(user.token, ids[0], language)
      const refused = { message: 'Cette notification ne vous appartient pas.', code: 'forbidden' }
      assert.deepEqual([answer.status, answer.body], [403, refused])
      assert.deepEqual(await readIds(other.id), ids)
    })
  }
})

describe('404: deleting a notification', () => {
  test('a request to delete a deleted notification or to mark it as read gets 404, from its owner and from another user', async () => {
    const user = await makeUser(h)
    const other = await makeUser(h)
    const [id] = await makeNotifications(h, user.id, 1)
    await remove(user.token, id)
    for (const { token } of [user, other]) {
      const again = await remove(token, id)
      assert.deepEqual([again.status, again.body], [404, UNKNOWN])
      assert.equal((await h.call('POST', `/api/v1/notifications/${id}/read`, { token })).status, 404)
    }
  })

  for (const id of ODD_IDS) {
    test(`a request to delete a notification with the id ${id.slice(0, 40)} gets 404`, async () => {
      const user = await makeUser(h)
      const ids = await makeNotifications(h, user.id, 1)
      const answer = await remove(user.token, id)
      assert.deepEqual([answer.status, answer.body], [404, UNKNOWN])
      assert.deepEqual(await readIds(user.id), ids)
    })
  }
})
