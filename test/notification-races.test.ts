import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { eraseUser } from '../src/personal-data.ts'
import { harness } from './support/app.ts'
import { makeNotifications, makeUser } from './support/factories.ts'

const h = harness()

const URL = '/api/v1/notifications'
const ROUNDS = 200

/**
 * Opens all connections of the pool before the tests. If a request had to wait until a connection is open, it would not
 * run concurrently with the other requests.
 */
async function openConnections() {
  const { pool } = h.database.sql
  const clients = await Promise.all(Array.from({ length: 5 }, () => pool.connect()))
  for (const client of clients) client.release()
  await Promise.all(Array.from({ length: 5 }, () => h.ctx.sql`select pg_sleep(0.05)`))
  assert.equal(h.ctx.sql.pipeline.stats().total, 5)
}

/**
 * Calls all functions in `racers` concurrently. Each round calls a different function first.
 * @returns the results, in the order of `racers`
 */
async function race<T>(round: number, racers: (() => Promise<T>)[]): Promise<T[]> {
  const start = round % racers.length
  const order = [...racers.keys()].map(index => (index + start) % racers.length)
  const results: T[] = []
  await Promise.all(
    order.map(async index => {
      results[index] = await racers[index]!()
    }),
  )
  return results
}

describe('concurrent requests about notifications', () => {
  before(openConnections)

  test('after concurrent requests to `read`, `read-all` and `delete`, the counts are right', async () => {
    const user = await makeUser(h)
    const call = (method: string, path: string, body?: unknown) => () =>
      h.call(method, `${URL}${path}`, { token: user.token, ...(body !== undefined && { body }) })
    for (let round = 0; round < ROUNDS; round += 1) {
      const ids = await makeNotifications(h, user.id, 6)
      const [all, again, some, read, reread, deleted, deletedAgain, readDeleted] = await race(round, [
        call('POST', '/read-all'),
        call('POST', '/read-all'),
        call('POST', '/read-all', { ids: ids.slice(2).toReversed() }),
        call('POST', `/${ids[0]}/read`),
        call('POST', `/${ids[0]}/read`),
        call('DELETE', `/${ids[1]}`),
        call('DELETE', `/${ids[1]}`),
        call('POST', `/${ids[1]}/read`),
      ])
      assert.equal(read!.status, 200)
      assert.equal(read!.text, reread!.text)
      assert.deepEqual([deleted!.status, deletedAgain!.status].sort(), [200, 404])
      assert.ok([200, 404].includes(readDeleted!.status), readDeleted!.text)
      // Only the three read-all requests mark the notifications `ids[2]` to `ids[5]`, so the sum of their counts is at
      // least four. The notifications `ids[0]` and `ids[1]` each add one to the sum, unless another request marks or
      // deletes that notification first.
      const counted = all!.body.count + again!.body.count + some!.body.count
      assert.ok(counted >= 4 && counted <= 6, `${counted} counted`)
      const left = await h.database.sql`select id from notification where user_id = ${user.id} and id >= ${ids[0]}`
      assert.equal(left.length, 5)
      const list = (await call('GET', '')()).body.meta
      assert.deepEqual([list.unread_count, list.total], [0, (round + 1) * 5])
    }
  })

  test('the counts of concurrent read-all requests, with and without ids, include every notification exactly once', async () => {
    const user = await makeUser(h)
    for (let round = 0; round < ROUNDS; round += 1) {
      const ids = await makeNotifications(h, user.id, 20)
      const bodies = [undefined, { ids: ids.slice(0, 12) }, undefined, { ids: ids.slice(8).toReversed() }]
      const answers = await race(
        round,
        bodies.map(body => () => h.call('POST', `${URL}/read-all`, { token: user.token, ...(body && { body }) })),
      )
      const counts = answers.map(answer => answer.body.count)
      assert.equal(
        counts.reduce((sum, count) => sum + count, 0),
        20,
        `${counts}`,
      )
    }
  })

  test('during concurrent changes, the total and the unread count of a list match its rows', async () => {
    const user = await makeUser(h)
    for (let round = 0; round < ROUNDS; round += 1) {
      const ids = await makeNotifications(h, user.id, 5)
      const list = () => h.call('GET', `${URL}?per_page=100`, { token: user.token })
      const answers = await race<{ body: any }>(round, [
        list,
        () => h.call('POST', `${URL}/read-all`, { token: user.token }),
        list,
        () => h.call('DELETE', `${URL}/${ids[0]}`, { token: user.token }),
        list,
      ])
      for (const { data, meta } of [answers[0]!.body, answers[2]!.body, answers[4]!.body]) {
        assert.equal(meta.total, data.length)
        assert.equal(meta.unread_count, data.filter((item: { is_read: boolean }) => !item.is_read).length)
      }
      await h.database.sql`delete from notification where user_id = ${user.id}`
    }
  })

  test('users whose notifications name each other can be deleted concurrently, even during a read-all request', async () => {
    const { sql } = h.database
    for (let round = 0; round < 25; round += 1) {
      const reader = await makeUser(h)
      const leaving = [await makeUser(h), await makeUser(h), await makeUser(h)]
      for (const recipient of [...leaving, reader]) {
        for (const actor of leaving) {
          const message = 'Marie a rejoint la partie.'
          await makeNotifications(h, recipient.id, 5, {
            message,
            actorId: actor.id,
            actorName: { start: 0, length: 5 },
          })
        }
      }
      const erased = await race<unknown>(round, [
        ...leaving.map(user => () => eraseUser(sql, user.id)),
        () => h.call('POST', `${URL}/read-all`, { token: reader.token }),
      ])
      assert.deepEqual(erased.slice(0, 3), [true, true, true])
      const left =
        await sql`select distinct message, read_at is null as unread from notification where user_id = ${reader.id}`
      assert.deepEqual(left, [{ message: 'Un joueur a rejoint la partie.', unread: false }])
    }
  })
})
