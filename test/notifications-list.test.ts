import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { harness } from './support/app.ts'
import { makeNotifications, makeUser } from './support/factories.ts'

const h = harness()

function list(token: string, query = '') {
  return h.call('GET', `/api/v1/notifications${query}`, { token })
}

const readIds = (answer: { body: { data: { id: number }[] } }) => answer.body.data.map(item => item.id)

describe('200: a list of notifications', () => {
  test('a notification has the specified fields and no others, and the members of `data` keep their order', async () => {
    const user = await makeUser(h)
    const [id] = await makeNotifications(h, user.id, 1, { data: { starts_at: 'x', game_id: 9, actor_id: 3 } })
    const answer = await list(user.token)
    assert.equal(answer.status, 200)
    assert.equal(answer.headers['cache-control'], 'no-store')
    assert.deepEqual(answer.body.data, [
      {
        id,
        type: 'game_full',
        title: 'Partie complète',
        message: 'Numéro 0',
        data: { starts_at: 'x', game_id: 9, actor_id: 3 },
        is_read: false,
        read_at: null,
        created_at: '2026-11-28T10:00:00+00:00',
      },
    ])
    assert.deepEqual(Object.keys(answer.body.data[0].data), ['starts_at', 'game_id', 'actor_id'])
  })

  test('the field `data` is null if the notification was stored without data', async () => {
    const user = await makeUser(h)
    await makeNotifications(h, user.id, 1)
    await h.database.sql`update notification set data = null where user_id = ${user.id}`
    assert.equal((await list(user.token)).body.data[0].data, null)
  })

  test('a list has only the caller’s notifications, newest first, with 20 notifications on a page', async () => {
    const user = await makeUser(h)
    const other = await makeUser(h)
    const ids = await makeNotifications(h, user.id, 45)
    await makeNotifications(h, other.id, 3)
    await h.call('POST', `/api/v1/notifications/${ids[0]}/read`, { token: user.token })
    const newest = ids.toReversed()
    for (const page of [1, 2, 3]) {
      const answer = await list(user.token, page === 1 ? '' : `?page=${page}`)
      assert.deepEqual(readIds(answer), newest.slice((page - 1) * 20, page * 20))
      assert.deepEqual(answer.body.meta, {
        current_page: page,
        last_page: 3,
        per_page: 20,
        total: 45,
        unread_count: 44,
      })
    }
  })

  const sizes: [total: number, perPage: number, lastPage: number][] = [
    [1, 1, 1],
    [2, 1, 2],
    [100, 100, 1],
    [101, 100, 2],
    [6, 3, 2],
    [7, 3, 3],
  ]
  for (const [total, perPage, lastPage] of sizes) {
    test(`with per_page=${perPage}, ${total} notifications fill ${lastPage} page(s), and each notification is on one page`, async () => {
      const user = await makeUser(h)
      const ids = await makeNotifications(h, user.id, total)
      const walked: number[] = []
      for (let page = 1; page <= lastPage; page += 1) {
        const answer = await list(user.token, `?page=${page}&per_page=${perPage}`)
        assert.equal(answer.body.meta.last_page, lastPage)
        walked.push(...readIds(answer))
      }
      assert.deepEqual(walked, ids.toReversed())
    })
  }

  test('a page after the last page has no notifications, and its `meta` has the right counts', async () => {
    const user = await makeUser(h)
    await makeNotifications(h, user.id, 3)
    for (const page of [2, 1_000_000, Number.MAX_SAFE_INTEGER]) {
      const answer = await list(user.token, `?page=${page}&per_page=100`)
      assert.equal(answer.status, 200)
      assert.deepEqual(answer.body, {
        data: [],
        meta: { current_page: page, last_page: 1, per_page: 100, total: 3, unread_count: 3 },
      })
    }
  })

  test('an empty list has one page', async () => {
    const user = await makeUser(h)
    assert.deepEqual((await list(user.token)).body, {
      data: [],
      meta: { current_page: 1, last_page: 1, per_page: 20, total: 0, unread_count: 0 },
    })
  })

  test('a notification with the greatest id, 2^53−1, can be listed and deleted', async () => {
    const user = await makeUser(h)
    const now = h.clock.now()
    await h.database.sql`
      insert into notification (id, user_id, type, title, message, dedup_key, locale, created_at, updated_at)
      overriding system value
      values (${Number.MAX_SAFE_INTEGER}, ${user.id}, 'game_full', 'x', 'x', 'greatest', 'fr', ${now}, ${now})`
    const { data } = (await list(user.token)).body
    assert.deepEqual([data.length, data[0]?.id], [1, Number.MAX_SAFE_INTEGER])
    const deleted = await h.call('DELETE', `/api/v1/notifications/${Number.MAX_SAFE_INTEGER}`, { token: user.token })
    assert.equal(deleted.status, 200)
  })

  test('paging with before_id repeats no notification, even if notifications are deleted and added between pages', async () => {
    const user = await makeUser(h)
    const ids = await makeNotifications(h, user.id, 7)
    const first = await list(user.token, '?per_page=3')
    await makeNotifications(h, user.id, 2)
    const last = first.body.data.at(-1).id
    await h.call('DELETE', `/api/v1/notifications/${last}`, { token: user.token })
    const second = await list(user.token, `?per_page=3&before_id=${last}`)
    assert.deepEqual(readIds(second), ids.toReversed().slice(3, 6))
    assert.deepEqual(second.body.meta, { current_page: 1, last_page: 3, per_page: 3, total: 8, unread_count: 8 })
  })

  test('before_id accepts the lowest and the greatest id', async () => {
    const user = await makeUser(h)
    const ids = await makeNotifications(h, user.id, 2)
    assert.deepEqual(readIds(await list(user.token, '?before_id=1')), [])
    assert.deepEqual(readIds(await list(user.token, `?before_id=${Number.MAX_SAFE_INTEGER}`)), ids.toReversed())
  })

  test('an empty query parameter counts as absent, and unknown query parameters are ignored', async () => {
    const user = await makeUser(h)
    assert.equal((await list(user.token, '?page=&x=1&per_page=&before_id=')).body.meta.per_page, 20)
  })
})

describe('401: a list of notifications', () => {
  test('a request to list notifications without a token gets 401', async () => {
    const answer = await h.call('GET', '/api/v1/notifications')
    assert.deepEqual([answer.status, answer.body], [401, { message: 'Unauthenticated.', code: 'unauthenticated' }])
  })
})

describe('422: a list of notifications', () => {
  const badPages = ['0', '-1', '1.5', 'x', '1e3', '0x10', '+1', '01', '9007199254740992', '9'.repeat(30), '١', '\0']
  const bad: [query: string, field: string][] = [
    ...badPages.map((value): [string, string] => [`?page=${encodeURIComponent(value)}`, 'page']),
    ['?page=1&page=2', 'page'],
    ['?page[]=1&page=x', 'page'],
    ['?per_page=0', 'per_page'],
    ['?per_page=101', 'per_page'],
    ['?per_page=x', 'per_page'],
    ['?before_id=0', 'before_id'],
    ['?before_id=x', 'before_id'],
    ['?before_id=9007199254740992', 'before_id'],
    ['?before_id=3&page=1', 'before_id'],
  ]
  for (const [query, field] of bad) {
    test(`a list request with the query ${query} gets a 422 that names ${field}`, async () => {
      const user = await makeUser(h)
      const answer = await list(user.token, query)
      assert.equal(answer.status, 422, answer.text)
      assert.equal(answer.body.code, 'validation_failed')
      assert.deepEqual(Object.keys(answer.body.errors), [field])
    })
  }
})
