import assert from 'node:assert/strict'
import { after, before, describe, mock, test } from 'node:test'
import { createTokens } from '../src/auth/jwt.ts'
import { createSessionCache } from '../src/auth/session-cache.ts'
import * as sessions from '../src/auth/sessions.ts'
import type { Query } from '../src/db/sql.ts'
import { eraseUser } from '../src/personal-data.ts'
import { type AnotherApp, anotherApp, harness } from './support/app.ts'
import { makeUser } from './support/factories.ts'
import { queuedCode, readPayload } from './support/scenario.ts'
import { countStatements } from './support/statements.ts'
import { waitUntil } from './support/wait-until.ts'

const h = harness()

describe('the session cache', { timeout: 60_000 }, () => {
  const other = {} as AnotherApp
  before(async () => {
    Object.assign(other, await anotherApp(h))
    await other.app.ready()
    await waitUntilUp(other.ctx.listener!)
    await waitUntilUp(h.ctx.listener!)
  })
  after(() => other.close())

  async function waitUntilUp(listener: NonNullable<typeof h.ctx.listener>): Promise<void> {
    if (!listener.isUp()) await new Promise<void>(resolve => void listener.onUp(resolve))
  }

  async function getStatus({ app }: Pick<typeof h, 'app'>, token: string): Promise<number> {
    const headers = { authorization: `Bearer ${token}` }
    return (await app.inject({ url: '/api/v1/notifications/unread-count', headers })).statusCode
  }

  /** Repeats a request to the other process until the token is refused. @returns the elapsed milliseconds */
  async function waitUntilRefused(token: string): Promise<number> {
    const since = performance.now()
    await waitUntil(async () => (await getStatus(other, token)) !== 200)
    return performance.now() - since
  }

  /** Creates a user whose token is in the cache of the other process. */
  async function makeCachedUser() {
    const user = await makeUser(h)
    assert.equal(await getStatus(other, user.token), 200)
    assert.equal(await countStatements(other.ctx, () => getStatus(other, user.token)), 1)
    return user
  }

  test('a request with a cached token skips the two statements of the session look-up, but not the route’s own statement', async () => {
    const { token } = await makeUser(h)
    // The first request sends three statements. They look up the session, record the first use of the token, and count
    // the unread notifications. The second request sends only the last statement.
    assert.equal(await countStatements(other.ctx, () => getStatus(other, token)), 3)
    assert.equal(await countStatements(other.ctx, () => getStatus(other, token)), 1)
  })

  const endings: [string, (user: { id: number; token: string }) => Promise<unknown>][] = [
    ['a logout', ({ token }) => h.call('POST', '/api/v1/auth/logout', { token })],
    ['a sign-out by an operator', ({ id }) => sessions.endAll(h.database.sql, id, h.clock.now())],
    ['a deletion of the account', ({ id }) => eraseUser(h.database.sql, id)],
    [
      'a refresh of a stolen token',
      async ({ token }) => {
        const next = (await h.call('POST', '/api/v1/auth/refresh', { token })).body.access_token
        assert.equal(await getStatus(h, next), 200)
        h.clock.advance(30_000)
        assert.equal((await h.call('POST', '/api/v1/auth/refresh', { token })).status, 401)
      },
    ],
  ]
  for (const [name, end] of endings) {
    test(`${name} at one process ends the session at the other process before the cache entry expires`, async () => {
      const user = await makeCachedUser()
      await end(user)
      assert.ok((await waitUntilRefused(user.token)) < 2_000)
    })
  }

  test('the process that answers a logout refuses the token in the next request', async () => {
    for (let round = 0; round < 50; round += 1) {
      const { token } = await makeUser(h)
      assert.equal(await getStatus(h, token), 200)
      assert.equal((await h.call('POST', '/api/v1/auth/logout', { token })).status, 200)
      assert.equal(await getStatus(h, token), 401)
    }
  })

  test('a process that gets no NOTIFY about the end of a session refuses the session’s token within 5 s', async () => {
    const { token } = await makeCachedUser()
    await h.database.sql`
      update session set ended_at = created_at, end_reason = 'logout' where id = ${readPayload(token).sid}`
    const since = performance.now()
    assert.equal(await getStatus(other, token), 200)
    const passed = await waitUntilRefused(token)
    assert.ok(performance.now() - since < 5_500, `${passed} ms`)
  })

  test('while the listener is down no session is cached, and the cache is empty when the listener is up again', async () => {
    const { token } = await makeCachedUser()
    const listener = other.ctx.listener!
    /** Waits until the listener goes up or down, then sends a request. @returns the request's number of statements */
    const countAt = (change: 'onUp' | 'onDown') =>
      new Promise<number>(resolve => {
        let first = true
        listener[change](() => {
          if (first) resolve(countStatements(other.ctx, () => getStatus(other, token)))
          first = false
        })
      })
    const [whenDown, whenUp] = [countAt('onDown'), countAt('onUp')]
    await h.database.sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and application_name = 'courtside-listener'`
    assert.equal(await whenDown, 2)
    // Each of the two requests sends two statements: one looks up the session, and one counts the unread notifications.
    // If the first request had cached the session, the second request would need only one statement.
    assert.equal(await whenUp, 2)
    assert.equal(await countStatements(other.ctx, () => getStatus(other, token)), 1)
    await waitUntilUp(h.ctx.listener!)
  })

  test('a cached token is refused as soon as its grace period of 30 s has ended or its exp is reached', async () => {
    const { token } = await makeUser(h)
    await h.call('POST', '/api/v1/auth/refresh', { token })
    assert.equal(await getStatus(other, token), 200)
    h.clock.advance(29_999)
    assert.equal(await countStatements(other.ctx, () => getStatus(other, token)), 1)
    h.clock.advance(1)
    assert.equal(await getStatus(other, token), 401)

    const { token: expiring } = await makeCachedUser()
    h.clock.advance(3_600_000 - 1)
    assert.equal(await countStatements(other.ctx, () => getStatus(other, expiring)), 1)
    h.clock.advance(1)
    assert.equal(await getStatus(other, expiring), 401)
  })

  test('the first request with a refreshed token reads the session from the database and records the use of the token', async () => {
    const { token } = await makeCachedUser()
    const next = (await h.call('POST', '/api/v1/auth/refresh', { token })).body.access_token
    assert.equal(await getStatus(other, next), 200)
    const [row] = await h.database.sql`select presented from session where id = ${readPayload(token).sid}`
    assert.equal(row!.presented, 2)
  })

  test('the process that answers a deletion refuses the token in the next request', async () => {
    for (let round = 0; round < 20; round += 1) {
      const { email, token } = await makeUser(h)
      await h.call('POST', '/api/v1/auth/request-otp', { body: { email }, token })
      const code = await queuedCode(h, email, readPayload(token).sid)
      assert.equal(await getStatus(h, token), 200)
      assert.equal((await h.call('DELETE', '/api/v1/auth/me', { body: { code }, token })).status, 200)
      assert.equal(await getStatus(h, token), 401)
    }
  })

  test('a full cache drops its oldest token', async () => {
    const { id, token } = await makeUser(h)
    const tokens = createTokens(h.ctx.keys)
    const { exp, iat } = readPayload(token)
    const sids = await h.database.sql<{ sid: string }>`
      insert into session (user_id, created_at, expires_at, issued_at, presented)
      select user_id, created_at, expires_at, issued_at, 1
      from session, generate_series(1, 10001) where id = ${readPayload(token).sid}
      returning id as sid`
    let lookUps = 0
    const counting = ((strings: TemplateStringsArray, ...values: unknown[]) => {
      lookUps += 1
      return h.database.sql(strings, ...values)
    }) as Query
    const listener = { ...other.ctx.listener!, isUp: () => true, onUp: () => 0, onDown: () => 0, on: () => {} }
    const cache = createSessionCache({ sql: h.database.sql, readSql: counting }, tokens, listener)
    const signed = sids.map(({ sid }) => tokens.sign({ sub: id, sid, generation: 1, iat, nbf: iat, exp }))
    // An entry lasts for 5 s by the monotonic clock.
    const stopped = performance.now()
    mock.method(performance, 'now', () => stopped)
    for (const each of signed) assert.equal((await cache.authenticate(each, h.clock.now()))?.userId, id)
    assert.equal(lookUps, 10_001)
    for (const each of [signed[1]!, signed.at(-1)!]) await cache.authenticate(each, h.clock.now())
    assert.equal(lookUps, 10_001)
    await cache.authenticate(signed[0]!, h.clock.now())
    assert.equal(lookUps, 10_002)
    mock.restoreAll()
  })

  test('a session row that was read before the session ended is not cached afterwards', async () => {
    await waitUntilUp(other.ctx.listener!)
    const { token } = await makeUser(h)
    const { sid, sub } = readPayload(token)
    const read = Promise.withResolvers<void>()
    const released = Promise.withResolvers<void>()
    // This function delays the rows of the look-up until the session has ended.
    const slow = (async (strings: TemplateStringsArray, ...values: unknown[]) => {
      const rows = await h.database.sql(strings, ...values)
      read.resolve()
      await released.promise
      return rows
    }) as Query
    const cache = createSessionCache({ sql: h.database.sql, readSql: slow }, createTokens(h.ctx.keys), {
      ...other.ctx.listener!,
      on: () => {},
    })
    const first = cache.authenticate(token, h.clock.now())
    await read.promise
    await sessions.end(h.database.sql, sid, h.clock.now())
    cache.forget({ userId: Number(sub), sessionId: sid })
    released.resolve()
    assert.equal((await first)?.sessionId, sid)
    assert.equal(await cache.authenticate(token, h.clock.now()), undefined)
  })
})
