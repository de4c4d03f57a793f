// This file has one test for each sentence of the specification's chapter "Resources and their fields" that is about a
// user, a notification or a list.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { harness } from '../support/app.ts'
import { makeNotifications, makeUser } from '../support/factories.ts'
import { cloudEvent, newGameId, report } from '../support/games.ts'
import { ISO_8601_WITH_OFFSET, inbox } from '../support/inbox.ts'

const h = harness()

const { list, read, makeOneOfEach } = inbox(h)

describe('Resources and their fields', () => {
  describe('User', () => {
    test('"Returned by the profile endpoint and, with the chosen level, by the level-assessment endpoint."', async () => {
      const { token } = await makeUser(h)
      const before = (await h.call('GET', '/api/v1/auth/me', { token })).body
      const [level] = (await h.call('GET', '/api/v1/game-levels')).body.data
      h.clock.advance(1_000)
      const body = { game_level_id: level.id }
      const { data } = (await h.call('POST', '/api/v1/auth/level-assessment', { token, body })).body
      assert.deepEqual(data, { ...before.data, game_level: level, updated_at: data.updated_at })
      assert.ok(data.updated_at > before.data.updated_at)
    })
  })

  describe('Notification', () => {
    test('"id | integer |"', async () => assert.ok(Number.isInteger((await makeOneOfEach()).unread.id)))

    test('"type | string | one of the types in the Events part"', async () =>
      assert.equal((await makeOneOfEach()).unread.type, 'game_full'))

    test('"title | string |"', async () => assert.equal((await makeOneOfEach()).unread.title, 'Partie complète'))

    test('"message | string (text) |"', async () => assert.equal((await makeOneOfEach()).unread.message, 'Numéro 1'))

    test('"keys seen are game_id and actor_id (integers) on a game notification"', async () => {
      const [creator, player] = [await makeUser(h), await makeUser(h)]
      const gameId = newGameId()
      const players = { creator_id: creator.id, player_ids: [creator.id, player.id], actor_id: player.id }
      await report(h, cloudEvent('game_joined', { game_id: gameId, ...players }))
      const [notification] = (await list(creator.token)).data
      assert.deepEqual(notification.data, {
        game_id: gameId,
        actor_id: player.id,
        starts_at: '2027-01-16T17:00:00+00:00',
      })
    })

    test('"data | object or null | free-form context"', async () => {
      const { id, token } = await makeUser(h)
      const [first] = await makeNotifications(h, id, 2)
      await h.database.sql`update notification set data = null where user_id = ${id} and id = ${first}`
      const { data } = await list(token)
      assert.deepEqual([data[0].data, data[1].data], [{ game_id: 1 }, null])
    })

    test('"is_read | boolean | true when read_at is set"', async () => {
      const { unread, read } = await makeOneOfEach()
      assert.deepEqual([unread.is_read, unread.read_at], [false, null])
      assert.equal(read.is_read, true)
      assert.notEqual(read.read_at, null)
    })

    test('"read_at | string (ISO 8601 timestamp with offset) or null | null while unread"', async () => {
      const { unread, read } = await makeOneOfEach()
      assert.equal(unread.read_at, null)
      assert.match(read.read_at, ISO_8601_WITH_OFFSET)
      assert.equal(Date.parse(read.read_at), Math.floor(Date.now() / 1000) * 1000)
    })

    test('"created_at | string (ISO 8601 timestamp with offset) |"', async () =>
      assert.match((await makeOneOfEach()).unread.created_at, ISO_8601_WITH_OFFSET))

    test('"Stored record: id (bigint), user_id (bigint, owner), type (string), title (string), message (text), data (json, nullable), read_at (timestamp, nullable), created_at, updated_at (timestamps)."', async () => {
      const columns = await h.database.sql<{ name: string; type: string; nullable: string }>`
        select column_name as name, data_type as type, is_nullable as nullable
        from information_schema.columns where table_name = 'notification'`
      const stored = Object.fromEntries(columns.map(({ name, type, nullable }) => [name, `${type} ${nullable}`]))
      const { id, user_id, type, title, message, data, read_at, created_at, updated_at } = stored
      assert.deepEqual([id, user_id, type, title, message].join(), 'bigint NO,bigint NO,text NO,text NO,text NO')
      assert.deepEqual([data, read_at], ['json YES', 'timestamp with time zone YES'])
      assert.deepEqual([created_at, updated_at], Array(2).fill('timestamp with time zone NO'))
    })

    test('"user_id and updated_at are not included in the API representation."', async () => {
      const shown = ['id', 'type', 'title', 'message', 'data', 'is_read', 'read_at', 'created_at']
      const { token, unread } = await makeOneOfEach()
      assert.deepEqual(Object.keys(unread), shown)
      assert.deepEqual(Object.keys((await read(token, unread.id)).body.data), shown)
    })
  })

  describe('Pagination meta (list of notifications)', () => {
    for (const [field, row, value] of [
      ['current_page', 'current_page | integer', 2],
      ['last_page', 'last_page | integer', 3],
      ['per_page', 'per_page | integer (20 in the observed response)', 20],
      ['total', 'total | integer', 41],
      ['unread_count', 'unread_count | integer', 40],
    ] as const) {
      test(`"${row}"`, async () => {
        const { id, token } = await makeUser(h)
        const [first] = await makeNotifications(h, id, 41)
        await read(token, first)
        const { meta } = await list(token, '?page=2')
        assert.deepEqual(Object.keys(meta), ['current_page', 'last_page', 'per_page', 'total', 'unread_count'])
        assert.equal(meta[field], value)
      })
    }
  })
})
