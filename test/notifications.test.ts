import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { harness } from './support/app.ts'
import { makeNotifications, makeUser } from './support/factories.ts'

const h = harness()

const NOT_YOURS = { message: 'Cette notification ne vous appartient pas.', code: 'forbidden' }
const UNKNOWN = { message: 'Introuvable.', code: 'not_found' }

function list(token: string, query = '') {
  return h.call('GET', `/api/v1/notifications${query}`, { token })
}

function read(token: string, id: unknown) {
  return h.call('POST', `/api/v1/notifications/${id}/read`, { token })
}

function remove(token: string, id: unknown, headers: Record<string, string> = {}) {
  return h.call('DELETE', `/api/v1/notifications/${id}`, { token, headers })
}

async function unread(token: string): Promise<number> {
  return (await h.call('GET', '/api/v1/notifications/unread-count', { token })).body.unread_count
}

const idsOf = (answer: { body: { data: { id: number }[] } }) => answer.body.data.map(item => item.id)

describe('GET /notifications', () => {
  test('a notification has exactly the fields of the specification', async () => {
    const user = await makeUser(h)
    const [id] = await makeNotifications(h, user.id, 1, { data: { game_id: 9, actor_id: 3 } })
    const answer = await list(user.token)
    assert.equal(answer.status, 200)
    assert.deepEqual(answer.body.data, [
      {
        id,
        type: 'game_full',
        title: 'Partie complète',
        message: 'Numéro 0',
        data: { game_id: 9, actor_id: 3 },
        is_read: false,
        read_at: null,
        created_at: '2026-11-28T10:00:00+00:00',
      },
    ])
    assert.deepEqual(Object.keys(answer.body.data[0].data), ['game_id', 'actor_id'])
  })

  test('newest first, 20 a page, the caller’s own alone', async () => {
    const user = await makeUser(h)
    const other = await makeUser(h)
    const ids = await makeNotifications(h, user.id, 45)
    await makeNotifications(h, other.id, 3)
    await read(user.token, ids[0])
    const newest = ids.toReversed()
    for (const page of [1, 2, 3]) {
      const answer = await list(user.token, page === 1 ? '' : `?page=${page}`)
      assert.deepEqual(idsOf(answer), newest.slice((page - 1) * 20, page * 20))
      assert.deepEqual(answer.body.meta, {
        current_page: page,
        last_page: 3,
        per_page: 20,
        total: 45,
        unread_count: 44,
      })
    }
  })

  test('the counts are right past the end, however far', async () => {
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

  test('the greatest identifier, 2^53−1, is listed like any other', async () => {
    const user = await makeUser(h)
    const now = h.clock.now()
    await h.database.sql`
      insert into notification (id, user_id, type, title, message, fact, locale, created_at, updated_at)
      overriding system value
      values (${Number.MAX_SAFE_INTEGER}, ${user.id}, 'game_full', 'x', 'x', 'greatest', 'fr', ${now}, ${now})`
    const { data } = (await list(user.token)).body
    assert.deepEqual([data.length, data[0]?.id], [1, Number.MAX_SAFE_INTEGER])
    const deleted = await h.call('DELETE', `/api/v1/notifications/${Number.MAX_SAFE_INTEGER}`, { token: user.token })
    assert.equal(deleted.status, 200)
  })

  test('before_id walks without repeats while new ones arrive', async () => {
    const user = await makeUser(h)
    const ids = await makeNotifications(h, user.id, 7)
    const first = await list(user.token, '?per_page=3')
    await makeNotifications(h, user.id, 2)
    const second = await list(user.token, `?per_page=3&before_id=${first.body.data.at(-1).id}`)
    assert.deepEqual(idsOf(second), ids.toReversed().slice(3, 6))
    assert.deepEqual(second.body.meta, { current_page: 1, last_page: 3, per_page: 3, total: 9, unread_count: 9 })
  })

  const bad: [string, string][] = [
    ...['0', '-1', '1.5', 'x', '1e3', '0x10', '+1', '01', '9007199254740992', '١'].map((value): [string, string] => [
      `?page=${encodeURIComponent(value)}`,
      'page',
    ]),
    ['?page=1&page=2', 'page'],
    ['?page[]=1&page=x', 'page'],
    ['?per_page=0', 'per_page'],
    ['?per_page=101', 'per_page'],
    ['?before_id=0', 'before_id'],
    ['?before_id=x', 'before_id'],
    ['?before_id=3&page=1', 'before_id'],
  ]
  for (const [query, field] of bad) {
    test(`422 for ${query}`, async () => {
      const user = await makeUser(h)
      const answer = await list(user.token, query)
      assert.equal(answer.status, 422, answer.text)
      assert.deepEqual(Object.keys(answer.body.errors), [field])
    })
  }

  test('an empty value counts as absent, unknown parameters are ignored', async () => {
    const user = await makeUser(h)
    assert.equal((await list(user.token, '?page=&x=1&per_page=')).body.meta.per_page, 20)
  })
})

describe('POST /notifications/{id}/read', () => {
  test('200: is_read and read_at; repeated, the same bytes', async () => {
    const user = await makeUser(h)
    const [id] = await makeNotifications(h, user.id, 1)
    h.clock.advance(1_000)
    const readAt = `${h.clock.now().toISOString().slice(0, 19)}+00:00`
    const first = await read(user.token, id)
    assert.equal(first.status, 200)
    assert.deepEqual([first.body.data.is_read, first.body.data.read_at], [true, readAt])
    h.clock.advance(60_000)
    assert.equal((await read(user.token, id)).text, first.text)
    assert.equal(await unread(user.token), 0)
  })

  test('403 for another’s, in every language, with nothing of it changed', async () => {
    const user = await makeUser(h)
    const other = await makeUser(h)
    const [id] = await makeNotifications(h, other.id, 1)
    const answer = await h.call('POST', `/api/v1/notifications/${id}/read`, {
      token: user.token,
      headers: { 'accept-language': 'en' },
    })
    assert.deepEqual([answer.status, answer.body], [403, NOT_YOURS])
    assert.equal(await unread(other.token), 1)
  })

  for (const id of [
    '999999999',
    '0',
    '-1',
    '1.5',
    'x',
    '9007199254740991',
    '9007199254740992',
    '9'.repeat(30),
    '9'.repeat(200),
    '%31%zz',
    '%00',
    '١',
    '01',
    '+1',
    '1e1',
  ]) {
    test(`404 for ${id.slice(0, 40)}`, async () => {
      const user = await makeUser(h)
      const answer = await read(user.token, id)
      assert.deepEqual([answer.status, answer.body], [404, UNKNOWN])
      assert.equal((await remove(user.token, id)).status, 404)
    })
  }
})

describe('POST /notifications/read-all', () => {
  const readAll = (token: string, body?: unknown) =>
    h.call('POST', '/api/v1/notifications/read-all', { token, ...(body !== undefined && { body }) })

  test('200: the count is that of the rows it changed', async () => {
    const user = await makeUser(h)
    const other = await makeUser(h)
    const ids = await makeNotifications(h, user.id, 5)
    await makeNotifications(h, other.id, 2)
    await read(user.token, ids[1])
    const answer = await readAll(user.token)
    assert.deepEqual([answer.status, Object.keys(answer.body), answer.body.count], [200, ['message', 'count'], 4])
    assert.equal((await readAll(user.token)).body.count, 0)
    assert.equal(await unread(user.token), 0)
    assert.equal(await unread(other.token), 2)
  })

  test('with ids only those that were on the screen, if they are one’s own', async () => {
    const user = await makeUser(h)
    const other = await makeUser(h)
    const ids = await makeNotifications(h, user.id, 4)
    const [foreign] = await makeNotifications(h, other.id, 1)
    assert.equal((await readAll(user.token, { ids: [ids[0], ids[0], ids[2], foreign, 999999999] })).body.count, 2)
    assert.equal((await readAll(user.token, { ids: [] })).body.count, 0)
    assert.equal(await unread(user.token), 2)
    assert.equal(await unread(other.token), 1)
    for (const body of [{ ids: null }, {}]) {
      await makeNotifications(h, user.id, 1)
      assert.ok((await readAll(user.token, body)).body.count > 0)
    }
  })

  const bad = [
    'x',
    1,
    { 0: 1 },
    ['1'],
    [1.5],
    [0],
    [null],
    [2 ** 53],
    Array.from({ length: 101 }, (_, index) => index + 1),
  ]
  for (const ids of bad) {
    test(`422 for ids ${JSON.stringify(ids).slice(0, 30)}`, async () => {
      const user = await makeUser(h)
      await makeNotifications(h, user.id, 1)
      const answer = await readAll(user.token, { ids })
      assert.equal(answer.status, 422, answer.text)
      assert.match(Object.keys(answer.body.errors)[0]!, /^ids/)
      assert.equal(await unread(user.token), 1)
    })
  }
})

describe('DELETE /notifications/{id}', () => {
  test('200, then 404', async () => {
    const user = await makeUser(h)
    const [id] = await makeNotifications(h, user.id, 1)
    const answer = await remove(user.token, id)
    assert.deepEqual([answer.status, answer.body], [200, { message: 'La notification a été supprimée.' }])
    assert.deepEqual((await remove(user.token, id)).body, UNKNOWN)
    assert.equal((await read(user.token, id)).status, 404)
  })

  test('403 for another’s', async () => {
    const user = await makeUser(h)
    const other = await makeUser(h)
    const [id] = await makeNotifications(h, other.id, 1)
    const answer = await remove(user.token, id, { 'accept-language': 'en' })
    assert.deepEqual([answer.status, answer.body], [403, NOT_YOURS])
    assert.equal(await unread(other.token), 1)
  })
})

test('401 without a token, on every one of them', async () => {
  for (const [method, path] of [
    ['GET', ''],
    ['GET', '/unread-count'],
    ['POST', '/1/read'],
    ['POST', '/read-all'],
    ['DELETE', '/1'],
  ] as const) {
    const answer = await h.call(method, `/api/v1/notifications${path}`)
    assert.equal(answer.status, 401)
    assert.equal(answer.body.message, 'Unauthenticated.')
  }
})

describe('delivering', () => {
  test('one row a person and fact; users that do not exist are skipped', async () => {
    const user = await makeUser(h)
    assert.equal((await makeNotifications(h, user.id, 3, { fact: 'the same' })).length, 1)
    assert.equal((await makeNotifications(h, 999_999, 2)).length, 0)
  })
})

describe('deleting the one who acted', () => {
  for (const firstName of ['Marie', 'Zoé', 'e\u0301toile', '👩‍👩‍👧 Élo', "O'Brien$&", '%s \\1']) {
    test(`takes the name ${firstName} out of others’ messages`, async () => {
      const reader = await makeUser(h)
      const actor = await makeUser(h, { firstName })
      for (const locale of ['fr', 'en'] as const) {
        await makeNotifications(h, reader.id, 1, {
          message: `${firstName} a rejoint la partie avec ${firstName}.`,
          locale,
          actorId: actor.id,
          actorNameLength: [...firstName].length,
        })
      }
      const { eraseUser } = await import('../src/personal-data.ts')
      assert.equal(await eraseUser(h.database.sql, actor.id), true)
      const messages = (await list(reader.token)).body.data.map((item: { message: string }) => item.message)
      assert.deepEqual(messages, [
        `A player a rejoint la partie avec ${firstName}.`,
        `Un joueur a rejoint la partie avec ${firstName}.`,
      ])
    })
  }
})

test('read, read-all and delete at once: every row is counted once', async () => {
  const user = await makeUser(h)
  for (let round = 0; round < 200; round += 1) {
    const ids = await makeNotifications(h, user.id, 6)
    const [all, again, ...rest] = await Promise.all([
      h.call('POST', '/api/v1/notifications/read-all', { token: user.token }),
      h.call('POST', '/api/v1/notifications/read-all', { token: user.token }),
      read(user.token, ids[0]),
      read(user.token, ids[0]),
      remove(user.token, ids[1]),
      remove(user.token, ids[1]),
    ])
    const [firstRead, secondRead, ...removed] = rest
    assert.equal(firstRead!.text, secondRead!.text)
    assert.deepEqual(removed.map(answer => answer.status).sort(), [200, 404])
    const counted = all!.body.count + again!.body.count
    assert.ok(counted >= 4 && counted <= 6, `${counted} counted`)
    assert.equal(await unread(user.token), 0)
  }
})
