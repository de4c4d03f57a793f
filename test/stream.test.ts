import assert from 'node:assert/strict'
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { describe, test } from 'node:test'
import { HINT_CHANNEL } from '../src/db/channels.ts'
import { inboxHint } from '../src/db/hints.ts'
import { onChannel } from '../src/db/own-schema.ts'
import { harness } from './support/app.ts'
import { assertError } from './support/endpoints.ts'
import type { ClientStream } from './support/event-stream.ts'
import { makeNotifications, makeNotificationsSilently, makeUser } from './support/factories.ts'
import { cloudEvent, newGameId, report } from './support/games.ts'
import { countStatements } from './support/statements.ts'
import { PATH, twoProcesses } from './support/streams.ts'
import { waitUntil } from './support/wait-until.ts'

/**
 * The greatest number of events that a test reads. One test stores 500 notifications and opens a stream. The stream
 * sends each notification once, and at most one unread count for each notification: at most 1,000 events.
 */
const MAX_EVENTS = 1_000

/** If a client reads nothing, the service must close its stream before this many MiB of notifications are sent. */
const MAX_UNREAD_MIB = 100

const ORIGIN = 'https://app.example.com'

const h = harness({ CORS_ORIGINS: ORIGIN })

async function assertNext(stream: ClientStream, name: string, data: unknown): Promise<void> {
  assert.deepEqual(await stream.next(), { event: name, data })
}

const call = (token: string, method: string, path: string, body?: unknown) =>
  h.call(method, PATH + path, { token, body })

describe('a stream of notifications', { timeout: 60_000 }, () => {
  const { at, second, open, openSynced } = twoProcesses(h)

  describe('the answer to a request for a stream', () => {
    test('the answer to a request for a stream is a 200 with text/event-stream, the common headers, and no caching or buffering', async () => {
      const { token } = await makeUser(h)
      const { response } = await open(at.here, token, { origin: ORIGIN })
      assert.equal(response.statusCode, 200)
      const { headers } = response
      assert.equal(headers['content-type'], 'text/event-stream')
      assert.equal(headers['cache-control'], 'no-store')
      assert.equal(headers['x-accel-buffering'], 'no')
      assert.equal(headers['x-content-type-options'], 'nosniff')
      assert.equal(headers['access-control-allow-origin'], ORIGIN)
      assert.match(String(headers['x-request-id']), /^[0-9a-f-]{36}$/)
    })

    test('a HEAD request for a stream returns the same headers and no body', async () => {
      const { token } = await makeUser(h)
      const answer = await h.call('HEAD', `${PATH}/stream`, { token })
      assert.deepEqual([answer.status, answer.text], [200, ''])
      assert.equal(answer.headers['content-type'], 'text/event-stream')
    })

    test('a request for a stream gets 401 without a token, and 405 with another method', async () => {
      assertError(await h.call('GET', `${PATH}/stream`), 401, 'unauthenticated')
      assertError(await h.call('POST', `${PATH}/stream`), 405, 'method_not_allowed')
    })
  })

  describe('the events of a stream', () => {
    test('the first event is a sync with the unread count and the latest id', async () => {
      const user = await makeUser(h)
      await assertNext(await open(at.here, user.token), 'sync', { unread_count: 0, latest_id: null })
      const [first, , last] = await makeNotifications(h, user.id, 3)
      await call(user.token, 'POST', `/${first}/read`)
      await assertNext(await open(at.there, user.token), 'sync', { unread_count: 2, latest_id: last })
    })

    test('streams at both processes send the notification of an event and then the unread count, whichever process received the event', async () => {
      const [creator, player] = [await makeUser(h), await makeUser(h)]
      const streams = [await openSynced(at.here, creator.token), await openSynced(at.there, creator.token)]
      const players = { creator_id: creator.id, player_ids: [creator.id, player.id], actor_id: player.id }
      assert.equal(await report(h, cloudEvent('game_joined', { game_id: newGameId(), ...players })), 1)
      const [listed] = (await call(creator.token, 'GET', '')).body.data
      for (const stream of streams) {
        await assertNext(stream, 'notification', listed)
        await assertNext(stream, 'unread_count', { unread_count: 1 })
      }
    })

    test('a read, read-all or delete request that changes the unread count causes streams to send the new count', async () => {
      const user = await makeUser(h)
      const ids = await makeNotificationsSilently(h, user.id, 6)
      const stream = await openSynced(at.there, user.token)
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

    test('a notification is sent to streams even if a notification with a higher id was committed before', async () => {
      const user = await makeUser(h)
      const stream = await openSynced(at.there, user.token)
      const late = await h.ctx.hints.sendAfter(changed =>
        h.database.sql.begin(async sql => {
          const inTransaction = { ...h, database: { ...h.database, sql: Object.assign(sql) } }
          const [lower] = await makeNotificationsSilently(inTransaction, user.id, 1)
          changed.add(inboxHint(user.id, lower))
          const [higher] = await makeNotifications(h, user.id, 1)
          assert.ok(lower! < higher!)
          assert.equal((await stream.next()).data.id, higher)
          await assertNext(stream, 'unread_count', { unread_count: 1 })
          return lower
        }),
      )
      assert.equal((await stream.next()).data.id, late)
      await assertNext(stream, 'unread_count', { unread_count: 2 })
    })

    test('a stream sends 500 notifications once each, in the order of their ids, after one commit or many commits', async () => {
      const [user, other] = [await makeUser(h), await makeUser(h)]
      const streams = [await openSynced(at.here, user.token), await openSynced(at.there, user.token)]
      const ids = await makeNotifications(h, user.id, 450)
      for (let count = 0; count < 50; count += 1) {
        await makeNotifications(h, other.id, 1)
        ids.push(...(await makeNotifications(h, user.id, 1)))
      }
      for (const stream of streams) {
        const received: number[] = []
        let unread = 0
        // An unread count may include a notification that the stream has not sent yet. So the loop waits for all
        // notifications and for the right count.
        for (
          let events = 0;
          events < MAX_EVENTS && (received.length < ids.length || unread < ids.length);
          events += 1
        ) {
          const { event, data } = await stream.next()
          if (event === 'notification') received.push(data.id)
          else unread = data.unread_count
        }
        assert.deepEqual(received, ids)
      }
    })

    test('if the process fails to read the changes of an inbox, it tries again until the streams have got the changes', async () => {
      const user = await makeUser(h)
      const stream = await openSynced(at.here, user.token)
      const [id] = await makeNotificationsSilently(h, user.id, 1)
      const { sql } = h.database
      const hasWarned = () =>
        h.logged.some(({ msg }) => String(msg).startsWith('cannot read notifications for the streams'))
      await sql`alter table notification rename to away`
      await sql`select pg_notify(${onChannel(HINT_CHANNEL)}, ${user.id}::text)`
      await waitUntil(hasWarned)
      await sql`alter table away rename to notification`
      assert.equal((await stream.next()).data.id, id)
      await assertNext(stream, 'unread_count', { unread_count: 1 })
    })

    test('a change in the inbox of a user without a stream causes no statement, and the streams of other users do not send this change', async () => {
      const [user, other] = [await makeUser(h), await makeUser(h)]
      const stream = await openSynced(at.there, user.token)
      const statements = await countStatements(second.ctx, async () => {
        await makeNotifications(h, other.id, 3)
        const [id] = await makeNotifications(h, user.id, 1)
        assert.equal((await stream.next()).data.id, id)
        await assertNext(stream, 'unread_count', { unread_count: 1 })
      })
      assert.equal(statements, 1)
    })
  })

  describe('the number of streams', () => {
    test('a user may have five streams at a process, and a sixth stream ends the oldest one', async () => {
      const [user, other] = [await makeUser(h), await makeUser(h)]
      const others = await openSynced(at.here, other.token)
      const elsewhere = await openSynced(at.there, user.token)
      const streams: ClientStream[] = []
      for (let count = 0; count < 6; count += 1) streams.push(await openSynced(at.here, user.token))
      assert.equal(await streams[0]!.ended(), true)
      const [id] = await makeNotifications(h, user.id, 1)
      for (const stream of [...streams.slice(1), elsewhere]) assert.equal((await stream.next()).data.id, id)
      const [othersId] = await makeNotifications(h, other.id, 1)
      assert.equal((await others.next()).data.id, othersId)
    })

    test('a stream whose client reads nothing is closed', async () => {
      const user = await makeUser(h)
      const asked = get(`${at.there}${PATH}/stream`, {
        agent: false,
        headers: { authorization: `Bearer ${user.token}` },
      })
      const [response] = (await once(asked, 'response')) as [IncomingMessage]
      response.on('error', () => {})
      const connections = () =>
        new Promise<number>((resolve, reject) => {
          second.app.server.getConnections((error, count) => (error ? reject(error) : resolve(count)))
        })
      assert.equal(await connections(), 1)
      for (let sent = 0; sent < MAX_UNREAD_MIB && (await connections()) > 0; sent += 1) {
        await makeNotifications(h, user.id, 1, { message: 'x'.repeat(2 ** 20) })
      }
      assert.equal(await connections(), 0, `the service buffers ${MAX_UNREAD_MIB} MiB for a client that reads nothing`)
      asked.destroy()
    })
  })
})
