import assert from 'node:assert/strict'
import { request } from 'node:http'
import { describe, test } from 'node:test'
import * as sessions from '../src/auth/sessions.ts'
import { eraseUser } from '../src/personal-data.ts'
import { harness } from './support/app.ts'
import { waitsForLock } from './support/database.ts'
import { makeNotifications, makeUser } from './support/factories.ts'
import { payloadOf, signIn } from './support/scenario.ts'
import { PATH, twoProcesses } from './support/streams.ts'

const h = harness()

describe('the stream', { timeout: 60_000 }, () => {
  const { at, second, startSecond, synced } = twoProcesses(h)

  describe('ends', () => {
    test('at logout, at whichever process, of that session’s alone', async () => {
      const user = await makeUser(h)
      const other = await signIn(h, user.email)
      const streams = [await synced(at.here, user.token), await synced(at.there, user.token)]
      const stays = await synced(at.there, other.token)
      assert.equal((await h.call('POST', '/api/v1/auth/logout', { token: user.token })).status, 200)
      for (const stream of streams) assert.equal(await stream.ended(), true)
      const [id] = await makeNotifications(h, user.id, 1)
      assert.equal((await stays.next()).data.id, id)
    })

    test('not at a refresh, but at one that is taken for theft', async () => {
      const user = await makeUser(h)
      const stream = await synced(at.there, user.token)
      const refresh = () => h.call('POST', '/api/v1/auth/refresh', { token: user.token })
      const { access_token: next } = (await refresh()).body
      assert.equal((await h.call('GET', `${PATH}/unread-count`, { token: next })).status, 200)
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
        const streams = [await synced(at.here, user.token), await synced(at.there, user.token)]
        await work(user.id)
        for (const stream of streams) assert.equal(await stream.ended(), true)
      }
    })

    test('when the process stops, at once and in an orderly way', async () => {
      const user = await makeUser(h)
      const streams = [await synced(at.there, user.token), await synced(at.there, user.token)]
      await second.app.close()
      // One that the process had to cut off would not be complete.
      for (const stream of streams) assert.equal(await stream.ended(), true)
      await second.ctx.close()
      await startSecond()
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
      const left = await synced(at.here, user.token)
      let count = lines().length
      left.close()
      assert.equal((await oneMore(count)).status, 200)
      const ended = await synced(at.here, user.token)
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
        const asked = request(`${at.here}/api/v1/auth/logout`, {
          method: 'POST',
          agent: false,
          headers: { authorization: `Bearer ${user.token}` },
        })
        asked.on('error', () => {}).end()
        while (!(await waitsForLock(h.database.sql))) assert.equal(gone().length, 0)
        asked.destroy()
        while (gone().length === 0) await new Promise(resolve => setImmediate(resolve))
      })
      assert.equal(gone()[0]!.route, '/api/v1/auth/logout')
    })
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
      const streams = [await synced(at.here, user.token), await synced(at.there, user.token)]
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
      const stream = await synced(at.there, user.token)
      const stays = await synced(at.there, other.token)
      // Nobody is notified of this one.
      await h.database.sql`
      update session set ended_at = created_at, end_reason = 'logout' where id = ${payloadOf(user.token).sid}`
      await cut()
      assert.equal(await stream.ended(), true)
      assert.equal((await stays.next()).event, 'sync')
    })
  })
})
