import assert from 'node:assert/strict'
import { once } from 'node:events'
import { get, type IncomingMessage, request } from 'node:http'
import { after, afterEach, before, describe, test } from 'node:test'
import { createApp } from '../src/app.ts'
import * as sessions from '../src/auth/sessions.ts'
import { createContext } from '../src/context.ts'
import { eraseUser } from '../src/personal-data.ts'
import { found, harness, testConfig } from './support/app.ts'
import { assertError } from './support/endpoints.ts'
import { type ClientStream, listen, openStream } from './support/event-stream.ts'
import { makeNotifications, makeUser } from './support/factories.ts'
import { event, happens, newGame } from './support/games.ts'
import { payloadOf, signIn } from './support/scenario.ts'
import { countStatements } from './support/statements.ts'

const PATH = '/api/v1/notifications'
const ORIGIN = 'https://app.example.com'

const h = harness({ CORS_ORIGINS: ORIGIN })

// Two processes, as far as anybody can tell: they share a database and nothing else.
let here: string
let there: string
const opened: ClientStream[] = []
const second = {} as Pick<typeof h, 'ctx' | 'app'>

async function startSecond() {
  second.ctx = createContext(testConfig(h.database.url), h.ctx.log, found(h.database.url), { now: h.clock.now })
  second.app = await createApp(second.ctx)
  return listen(second.app)
}

async function open(address: string, token: string, headers?: Record<string, string>): Promise<ClientStream> {
  const stream = await openStream(address, token, headers)
  opened.push(stream)
  return stream
}

/** A stream that has had its `sync`. */
async function synced(address: string, token: string): Promise<ClientStream> {
  const stream = await open(address, token)
  assert.equal((await stream.next()).event, 'sync')
  return stream
}

async function assertNext(stream: ClientStream, name: string, data: unknown): Promise<void> {
  assert.deepEqual(await stream.next(), { event: name, data })
}

const call = (token: string, method: string, path: string, body?: unknown) =>
  h.call(method, PATH + path, { token, body })

describe('the stream', { timeout: 60_000 }, () => {
  before(async () => {
    here = await listen(h.app)
    there = await startSecond()
  })
  afterEach(() => {
    for (const stream of opened.splice(0)) stream.close()
  })
  after(async () => {
    await second.app.close()
    await second.ctx.close()
  })

  describe('the answer', () => {
    test('200 text/event-stream, not to be kept or held back, with the headers of every answer', async () => {
      const { token } = await makeUser(h)
      const { response } = await open(here, token, { origin: ORIGIN })
      assert.equal(response.statusCode, 200)
      const { headers } = response
      assert.equal(headers['content-type'], 'text/event-stream')
      assert.equal(headers['cache-control'], 'no-store')
      assert.equal(headers['x-accel-buffering'], 'no')
      assert.equal(headers['x-content-type-options'], 'nosniff')
      assert.equal(headers['access-control-allow-origin'], ORIGIN)
      assert.match(String(headers['x-request-id']), /^[0-9a-f-]{36}$/)
    })

    test('HEAD: the same head, and it is over', async () => {
      const { token } = await makeUser(h)
      const answer = await h.call('HEAD', `${PATH}/stream`, { token })
      assert.deepEqual([answer.status, answer.text], [200, ''])
      assert.equal(answer.headers['content-type'], 'text/event-stream')
    })

    test('401 without a token, 405 for another method, as everywhere', async () => {
      assertError(await h.call('GET', `${PATH}/stream`), 401, 'unauthenticated')
      assertError(await h.call('POST', `${PATH}/stream`), 405, 'method_not_allowed')
    })
  })

  describe('what is sent', () => {
    test('first of all how things stand', async () => {
      const user = await makeUser(h)
      await assertNext(await open(here, user.token), 'sync', { unread_count: 0, latest_id: null })
      const [first, , last] = await makeNotifications(h, user.id, 3)
      await call(user.token, 'POST', `/${first}/read`)
      await assertNext(await open(there, user.token), 'sync', { unread_count: 2, latest_id: last })
    })

    test('a fact reported at one process reaches the streams at both: the notification as it is listed, then the count', async () => {
      const [creator, player] = [await makeUser(h), await makeUser(h)]
      const streams = [await synced(here, creator.token), await synced(there, creator.token)]
      const players = { creator_id: creator.id, player_ids: [creator.id, player.id], actor_id: player.id }
      assert.equal(await happens(h, event('game_joined', { game_id: newGame(), ...players })), 1)
      const [listed] = (await call(creator.token, 'GET', '')).body.data
      for (const stream of streams) {
        await assertNext(stream, 'notification', listed)
        await assertNext(stream, 'unread_count', { unread_count: 1 })
      }
    })

    test('the count, when read, read-all and delete have changed it, and only then', async () => {
      const user = await makeUser(h)
      const ids = await makeNotifications(h, user.id, 6)
      const stream = await synced(there, user.token)
      const steps: [string, string, unknown, number | undefined][] = [
        ['POST', `/${ids[0]}/read`, undefined, 5],
        ['DELETE', `/${ids[0]}`, undefined, undefined],
        ['DELETE', `/${ids[1]}`, undefined, 4],
        ['POST', '/read-all', { ids: [ids[0], ids[2]] }, 3],
        ['POST', '/read-all', { ids: [ids[2]] }, undefined],
        ['POST', '/read-all', undefined, 0],
        ['POST', '/read-all', undefined, undefined],
      ]
      for (const [method, path, body, unread] of steps) {
        h.clock.advance(1_000)
        assert.equal((await call(user.token, method, path, body)).status, 200)
        if (unread !== undefined) await assertNext(stream, 'unread_count', { unread_count: unread })
      }
      h.clock.advance(1_000)
      assert.equal((await call(user.token, 'POST', `/${ids[2]}/read`)).status, 200)
      const [next] = await makeNotifications(h, user.id, 1)
      assert.equal((await stream.next()).data.id, next)
    })

    test('a notification that commits late, after one with a higher id', async () => {
      const user = await makeUser(h)
      const stream = await synced(there, user.token)
      const late = await h.database.sql.begin(async sql => {
        const [lower] = await makeNotifications(
          { ...h, database: { ...h.database, sql: Object.assign(sql) } },
          user.id,
          1,
        )
        const [higher] = await makeNotifications(h, user.id, 1)
        assert.ok(lower! < higher!)
        assert.equal((await stream.next()).data.id, higher)
        await assertNext(stream, 'unread_count', { unread_count: 1 })
        return lower
      })
      assert.equal((await stream.next()).data.id, late)
      await assertNext(stream, 'unread_count', { unread_count: 2 })
    })

    test('each of many once, whether they come at once or one by one, in the order of their ids', async () => {
      const [user, other] = [await makeUser(h), await makeUser(h)]
      const streams = [await synced(here, user.token), await synced(there, user.token)]
      const ids = await makeNotifications(h, user.id, 450)
      for (let count = 0; count < 50; count += 1) {
        await makeNotifications(h, other.id, 1)
        ids.push(...(await makeNotifications(h, user.id, 1)))
      }
      for (const stream of streams) {
        const came: number[] = []
        let unread = 0
        // A count can be ahead of the notification that its last one is: it is read a moment before that one is heard of.
        while (came.length < ids.length || unread < ids.length) {
          const { event, data } = await stream.next()
          if (event === 'notification') came.push(data.id)
          else unread = data.unread_count
        }
        assert.deepEqual(came, ids)
      }
    })

    test('nothing of others’, who cost no statement without a stream', async () => {
      const [user, other] = [await makeUser(h), await makeUser(h)]
      const stream = await synced(there, user.token)
      const statements = await countStatements(second.ctx, async () => {
        await makeNotifications(h, other.id, 3)
        const [id] = await makeNotifications(h, user.id, 1)
        assert.equal((await stream.next()).data.id, id)
        await assertNext(stream, 'unread_count', { unread_count: 1 })
      })
      assert.equal(statements, 1)
    })
  })

  describe('how many', () => {
    test('five of a user in a process; the sixth makes the oldest go', async () => {
      const [user, other] = [await makeUser(h), await makeUser(h)]
      const others = await synced(here, other.token)
      const elsewhere = await synced(there, user.token)
      const streams: ClientStream[] = []
      for (let count = 0; count < 6; count += 1) streams.push(await synced(here, user.token))
      assert.equal(await streams[0]!.ended(), true)
      const [id] = await makeNotifications(h, user.id, 1)
      for (const stream of [...streams.slice(1), elsewhere]) assert.equal((await stream.next()).data.id, id)
      const [othersId] = await makeNotifications(h, other.id, 1)
      assert.equal((await others.next()).data.id, othersId)
    })

    test('a reader who takes nothing is dropped', async () => {
      const user = await makeUser(h)
      const asked = get(`${there}${PATH}/stream`, { agent: false, headers: { authorization: `Bearer ${user.token}` } })
      const [response] = (await once(asked, 'response')) as [IncomingMessage]
      response.on('error', () => {})
      const connections = () =>
        new Promise<number>((resolve, reject) => {
          second.app.server.getConnections((error, count) => (error ? reject(error) : resolve(count)))
        })
      assert.equal(await connections(), 1)
      let sent = 0
      while ((await connections()) > 0) {
        await makeNotifications(h, user.id, 1, { message: 'x'.repeat(2 ** 20) })
        sent += 1
        assert.ok(sent < 100, 'what one reader leaves lying grows and grows')
      }
      asked.destroy()
    })
  })

  describe('the end', () => {
    test('at logout, at whichever process, of that session’s alone', async () => {
      const user = await makeUser(h)
      const other = await signIn(h, user.email)
      const streams = [await synced(here, user.token), await synced(there, user.token)]
      const stays = await synced(there, other.token)
      assert.equal((await h.call('POST', '/api/v1/auth/logout', { token: user.token })).status, 200)
      for (const stream of streams) assert.equal(await stream.ended(), true)
      const [id] = await makeNotifications(h, user.id, 1)
      assert.equal((await stays.next()).data.id, id)
    })

    test('not at a refresh, but at one that is taken for theft', async () => {
      const user = await makeUser(h)
      const stream = await synced(there, user.token)
      const refresh = () => h.call('POST', '/api/v1/auth/refresh', { token: user.token })
      const { access_token: next } = (await refresh()).body
      assert.equal((await call(next, 'GET', '/unread-count')).status, 200)
      const [id] = await makeNotifications(h, user.id, 1)
      assert.equal((await stream.next()).data.id, id)
      h.clock.advance(31_000)
      assert.equal((await refresh()).status, 401)
      assert.equal(await stream.ended(), true)
    })

    test('when an operator signs the user out, and when the account is deleted', async () => {
      for (const work of [
        (id: number) => sessions.endAll(h.database.sql, id, h.clock.now()),
        (id: number) => eraseUser(h.database.sql, id),
      ]) {
        const user = await makeUser(h)
        const streams = [await synced(here, user.token), await synced(there, user.token)]
        await work(user.id)
        for (const stream of streams) assert.equal(await stream.ended(), true)
      }
    })

    test('when the process stops, at once and in an orderly way', async () => {
      const user = await makeUser(h)
      const streams = [await synced(there, user.token), await synced(there, user.token)]
      const asked = performance.now()
      await second.app.close()
      assert.ok(performance.now() - asked < 2_000)
      for (const stream of streams) assert.equal(await stream.ended(), true)
      await second.ctx.close()
      there = await startSecond()
    })
  })

  describe('the log', () => {
    const lines = () => h.logged.filter(line => line.msg === 'answered' && line.route === `${PATH}/stream`)

    /** Resolves when there is another line. */
    async function oneMore(count: number): Promise<Record<string, unknown>> {
      while (lines().length === count) await new Promise(resolve => setImmediate(resolve))
      assert.equal(lines().length, count + 1)
      return lines().at(-1)!
    }

    test('has a line of each stream when it is over, whoever ends it', async () => {
      const user = await makeUser(h)
      const left = await synced(here, user.token)
      let count = lines().length
      left.close()
      assert.equal((await oneMore(count)).status, 200)
      const ended = await synced(here, user.token)
      count = lines().length
      await h.call('POST', '/api/v1/auth/logout', { token: user.token })
      assert.equal(await ended.ended(), true)
      assert.equal((await oneMore(count)).status, 200)
    })

    test('says 499 of a client that went before its answer', async () => {
      const user = await makeUser(h)
      const gone = () => h.logged.filter(line => line.status === 499)
      await h.database.sql.begin(async tx => {
        await tx`select id from session where user_id = ${user.id} for update`
        const asked = request(`${here}/api/v1/auth/logout`, {
          method: 'POST',
          agent: false,
          headers: { authorization: `Bearer ${user.token}` },
        })
        asked.on('error', () => {}).end()
        while (!(await isWaiting())) assert.equal(gone().length, 0)
        asked.destroy()
        while (gone().length === 0) await new Promise(resolve => setImmediate(resolve))
      })
      assert.equal(gone()[0]!.route, '/api/v1/auth/logout')
    })

    async function isWaiting(): Promise<boolean> {
      const [row] = await h.database.sql<{ count: number }>`
        select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
      return row!.count > 0
    }
  })

  describe('a lost connection to the database', () => {
    /** Cuts every listening connection, and keeps them all cut until `work` is done. */
    async function cut(work: () => Promise<unknown> = async () => {}): Promise<void> {
      const down = [h.ctx, second.ctx].map(({ listener }) => new Promise<void>(resolve => listener!.onDown(resolve)))
      const { sql } = h.database
      await sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and application_name = 'courtside-listener'`
      await Promise.all(down)
      await work()
    }

    test('is made again, and every client told how things stand', async () => {
      const user = await makeUser(h)
      const streams = [await synced(here, user.token), await synced(there, user.token)]
      let ids: number[] = []
      await cut(async () => {
        ids = await makeNotifications(h, user.id, 2)
      })
      for (const stream of streams) {
        let last = await stream.next()
        // What was stored may have been heard of too, if the connection was back by then.
        while (last.event !== 'sync' || last.data.unread_count < 2) last = await stream.next()
        assert.deepEqual(last.data, { unread_count: 2, latest_id: ids[1] })
      }
      const [id] = await makeNotifications(h, user.id, 1)
      for (const stream of streams) {
        let last = await stream.next()
        while (last.data.id !== id) last = await stream.next()
      }
    })

    test('a session that ended meanwhile has no stream any more', async () => {
      const [user, other] = [await makeUser(h), await makeUser(h)]
      const stream = await synced(there, user.token)
      const stays = await synced(there, other.token)
      // Nobody is notified of this one.
      await h.database.sql`
      update session set ended_at = created_at, end_reason = 'logout' where id = ${payloadOf(user.token).sid}`
      await cut()
      assert.equal(await stream.ended(), true)
      assert.equal((await stays.next()).event, 'sync')
    })
  })
})
