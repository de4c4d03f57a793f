import assert from 'node:assert/strict'
import { request } from 'node:http'
import { describe, test } from 'node:test'
import * as sessions from '../src/auth/sessions.ts'
import { eraseUser } from '../src/personal-data.ts'
import { harness } from './support/app.ts'
import { waitsForLock } from './support/database.ts'
import type { Event } from './support/event-stream.ts'
import { makeNotifications, makeUser } from './support/factories.ts'
import { readPayload, signIn } from './support/scenario.ts'
import { PATH, twoProcesses } from './support/streams.ts'
import { waitUntil } from './support/wait-until.ts'

/** The greatest number of events that a test reads while it waits for a certain event. */
const MAX_EVENTS = 20

const isFinalSync = ({ event, data }: Event) => event === 'sync' && data.unread_count === 2

const h = harness()

describe('the end of a stream', { timeout: 60_000 }, () => {
  const { at, second, startSecond, openSynced } = twoProcesses(h)

  describe('the reasons for the end of a stream', () => {
    test('a logout ends the streams of its session at all processes, and no other streams', async () => {
      const user = await makeUser(h)
      const other = await signIn(h, user.email)
      const streams = [await openSynced(at.here, user.token), await openSynced(at.there, user.token)]
      const stays = await openSynced(at.there, other.token)
      assert.equal((await h.call('POST', '/api/v1/auth/logout', { token: user.token })).status, 200)
      for (const stream of streams) assert.equal(await stream.ended(), true)
      const [id] = await makeNotifications(h, user.id, 1)
      assert.equal((await stays.next()).data.id, id)
    })

    test('a normal refresh does not end a stream, but a refresh with a stolen token does', async () => {
      const user = await makeUser(h)
      const stream = await openSynced(at.there, user.token)
      const refresh = () => h.call('POST', '/api/v1/auth/refresh', { token: user.token })
      const { access_token: next } = (await refresh()).body
      assert.equal((await h.call('GET', `${PATH}/unread-count`, { token: next })).status, 200)
      const [id] = await makeNotifications(h, user.id, 1)
      assert.equal((await stream.next()).data.id, id)
      h.clock.advance(31_000)
      assert.equal((await refresh()).status, 401)
      assert.equal(await stream.ended(), true)
    })

    test('a sign-out by an operator and the deletion of an account end the streams of the user', async () => {
      for (const work of [
        (id: number) => sessions.endAll(h.database.sql, id, h.clock.now()),
        (id: number) => eraseUser(h.database.sql, id),
      ]) {
        const user = await makeUser(h)
        const streams = [await openSynced(at.here, user.token), await openSynced(at.there, user.token)]
        await work(user.id)
        for (const stream of streams) assert.equal(await stream.ended(), true)
      }
    })

    test('a process that stops ends its streams immediately, and completes the answers of these streams', async () => {
      const user = await makeUser(h)
      const streams = [await openSynced(at.there, user.token), await openSynced(at.there, user.token)]
      await second.app.close()
      // If the process had cut the connection, the answer would not be complete.
      for (const stream of streams) assert.equal(await stream.ended(), true)
      await second.ctx.close()
      await startSecond()
    })
  })

  describe('the log of streams', () => {
    const readLines = () => h.logged.filter(line => line.msg === 'answered' && line.route === `${PATH}/stream`)

    /** Waits for the next log line about a stream. @param count the number of earlier lines @returns the new line */
    async function nextLine(count: number): Promise<Record<string, unknown>> {
      await waitUntil(() => readLines().length > count)
      assert.equal(readLines().length, count + 1)
      return readLines().at(-1)!
    }

    test('each stream is logged once, at its end, whether the client or the service ends the stream', async () => {
      const user = await makeUser(h)
      const leaving = await openSynced(at.here, user.token)
      let count = readLines().length
      leaving.close()
      assert.equal((await nextLine(count)).status, 200)
      const ended = await openSynced(at.here, user.token)
      count = readLines().length
      await h.call('POST', '/api/v1/auth/logout', { token: user.token })
      assert.equal(await ended.ended(), true)
      assert.equal((await nextLine(count)).status, 200)
    })

    test('a request whose client disconnects before the answer is logged with the status 499', async () => {
      const user = await makeUser(h)
      const aborted = () => h.logged.filter(line => line.status === 499)
      await h.database.sql.begin(async tx => {
        await tx`select id from session where user_id = ${user.id} for update`
        const asked = request(`${at.here}/api/v1/auth/logout`, {
          method: 'POST',
          agent: false,
          headers: { authorization: `Bearer ${user.token}` },
        })
        asked.on('error', () => {}).end()
        await waitUntil(() => waitsForLock(h.database.sql))
        assert.equal(aborted().length, 0)
        // Without a reset, the service could not know whether the client still reads.
        asked.socket!.resetAndDestroy()
        await waitUntil(() => aborted().length > 0)
      })
      assert.equal(aborted()[0]!.route, '/api/v1/auth/logout')
    })
  })

  describe('a lost listening connection', () => {
    /** Cuts the listening connections of both processes. Runs `work` after both processes have noticed the loss. */
    async function cutConnections(work: () => Promise<unknown> = async () => {}): Promise<void> {
      const down = [h.ctx, second.ctx].map(({ listener }) => new Promise<void>(resolve => listener!.onDown(resolve)))
      const { sql } = h.database
      await sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and application_name = 'courtside-listener'`
      await Promise.all(down)
      await work()
    }

    test('after the listener has reconnected, every stream gets a sync', async () => {
      const user = await makeUser(h)
      const streams = [await openSynced(at.here, user.token), await openSynced(at.there, user.token)]
      let ids: number[] = []
      await cutConnections(async () => {
        ids = await makeNotifications(h, user.id, 2)
      })
      for (const stream of streams) {
        let last = await stream.next()
        // If the listener reconnects quickly, the stream sends another `sync` and other events before the expected
        // `sync`.
        for (let events = 0; events < MAX_EVENTS && !isFinalSync(last); events += 1) last = await stream.next()
        assert.deepEqual(last.data, { unread_count: 2, latest_id: ids[1] })
      }
      const [id] = await makeNotifications(h, user.id, 1)
      for (const stream of streams) {
        let last = await stream.next()
        for (let events = 0; events < MAX_EVENTS && last.data.id !== id; events += 1) last = await stream.next()
        assert.equal(last.data.id, id)
      }
    })

    test('if a session ends while the listener has no connection, the streams of the session end after the reconnection', async () => {
      const [user, other] = [await makeUser(h), await makeUser(h)]
      const stream = await openSynced(at.there, user.token)
      const stays = await openSynced(at.there, other.token)
      // This statement ends the session without a NOTIFY.
      await h.database.sql`
      update session set ended_at = created_at, end_reason = 'logout' where id = ${readPayload(user.token).sid}`
      await cutConnections()
      assert.equal(await stream.ended(), true)
      assert.equal((await stays.next()).event, 'sync')
    })
  })
})
