import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { createTokens } from '../src/auth/jwt.ts'
import { createSessionCache } from '../src/auth/session-cache.ts'
import * as sessions from '../src/auth/sessions.ts'
import type { Query } from '../src/db/sql.ts'
import { eraseUser } from '../src/personal-data.ts'
import { type AnotherApp, anotherApp, harness } from './support/app.ts'
import { makeUser } from './support/factories.ts'
import { payloadOf } from './support/scenario.ts'
import { countStatements } from './support/statements.ts'

const h = harness()

describe('the session cache', { timeout: 60_000 }, () => {
  const other = {} as AnotherApp
  before(async () => {
    Object.assign(other, await anotherApp(h))
    await other.app.ready()
    await up(other.ctx.listener!)
    await up(h.ctx.listener!)
  })
  after(() => other.close())

  async function up(listener: NonNullable<typeof h.ctx.listener>): Promise<void> {
    if (!listener.isUp()) await new Promise<void>(resolve => void listener.onUp(resolve))
  }

  async function statusAt({ app }: Pick<typeof h, 'app'>, token: string): Promise<number> {
    const headers = { authorization: `Bearer ${token}` }
    return (await app.inject({ url: '/api/v1/notifications/unread-count', headers })).statusCode
  }

  /** Asks until it is refused. @returns after how many milliseconds */
  async function refused(token: string): Promise<number> {
    const since = performance.now()
    while ((await statusAt(other, token)) === 200) assert.ok(performance.now() - since < 10_000, 'still let in')
    return performance.now() - since
  }

  /** A person whose token the other process remembers. */
  async function remembered() {
    const user = await makeUser(h)
    assert.equal(await statusAt(other, user.token), 200)
    assert.equal(await countStatements(other.ctx, () => statusAt(other, user.token)), 1)
    return user
  }

  test('saves the look-up, and not the work', async () => {
    const { token } = await makeUser(h)
    // The look-up, that the token has been shown, and the count.
    assert.equal(await countStatements(other.ctx, () => statusAt(other, token)), 3)
    assert.equal(await countStatements(other.ctx, () => statusAt(other, token)), 1)
  })

  const endings: [string, (user: { id: number; token: string }) => Promise<unknown>][] = [
    ['logout', ({ token }) => h.call('POST', '/api/v1/auth/logout', { token })],
    ['an operator’s sign-out', ({ id }) => sessions.endAll(h.database.sql, id, h.clock.now())],
    ['the deletion of the account', ({ id }) => eraseUser(h.database.sql, id)],
    [
      'a refresh that is taken for theft',
      async ({ token }) => {
        const next = (await h.call('POST', '/api/v1/auth/refresh', { token })).body.access_token
        assert.equal(await statusAt(h, next), 200)
        h.clock.advance(30_000)
        assert.equal((await h.call('POST', '/api/v1/auth/refresh', { token })).status, 401)
      },
    ],
  ]
  for (const [name, end] of endings) {
    test(`${name} at one process is known to the other before its memory ends`, async () => {
      const user = await remembered()
      await end(user)
      assert.ok((await refused(user.token)) < 2_000)
    })
  }

  test('the process that answers a logout refuses from then on', async () => {
    for (let round = 0; round < 50; round += 1) {
      const { token } = await makeUser(h)
      assert.equal(await statusAt(h, token), 200)
      assert.equal((await h.call('POST', '/api/v1/auth/logout', { token })).status, 200)
      assert.equal(await statusAt(h, token), 401)
    }
  })

  test('an ending that nobody hears of is known within 5 s', async () => {
    const { token } = await remembered()
    await h.database.sql`
      update session set ended_at = created_at, end_reason = 'logout' where id = ${payloadOf(token).sid}`
    const since = performance.now()
    assert.equal(await statusAt(other, token), 200)
    const passed = await refused(token)
    assert.ok(performance.now() - since < 5_500, `${passed} ms`)
  })

  test('is off while the listener is down, and empty when it is back', async () => {
    const { token } = await remembered()
    const listener = other.ctx.listener!
    /** What a request costs at the very moment of the next change. */
    const costAt = (change: 'onUp' | 'onDown') =>
      new Promise<number>(resolve => {
        let first = true
        listener[change](() => {
          if (first) resolve(countStatements(other.ctx, () => statusAt(other, token)))
          first = false
        })
      })
    const [down, back] = [costAt('onDown'), costAt('onUp')]
    await h.database.sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and application_name = 'courtside-listener'`
    assert.equal(await down, 2)
    // What was looked up while it was down has not been kept.
    assert.equal(await back, 2)
    assert.equal(await countStatements(other.ctx, () => statusAt(other, token)), 1)
    await up(h.ctx.listener!)
  })

  test('the end of the 30 s of grace and exp stay exact', async () => {
    const { token } = await makeUser(h)
    await h.call('POST', '/api/v1/auth/refresh', { token })
    assert.equal(await statusAt(other, token), 200)
    h.clock.advance(29_999)
    assert.equal(await countStatements(other.ctx, () => statusAt(other, token)), 1)
    h.clock.advance(1)
    assert.equal(await statusAt(other, token), 401)

    const { token: lasting } = await remembered()
    h.clock.advance(3_600_000 - 1)
    assert.equal(await countStatements(other.ctx, () => statusAt(other, lasting)), 1)
    h.clock.advance(1)
    assert.equal(await statusAt(other, lasting), 401)
  })

  test('a new token is looked up, so that its having been shown is written down', async () => {
    const { token } = await remembered()
    const next = (await h.call('POST', '/api/v1/auth/refresh', { token })).body.access_token
    assert.equal(await statusAt(other, next), 200)
    const [row] = await h.database.sql`select presented from session where id = ${payloadOf(token).sid}`
    assert.equal(row!.presented, 2)
  })

  test('a row read before an ending is not kept after it', async () => {
    await up(other.ctx.listener!)
    const { token } = await makeUser(h)
    const { sid, sub } = payloadOf(token)
    const read = Promise.withResolvers<void>()
    const goOn = Promise.withResolvers<void>()
    // The answer to the look-up is on its way while the session ends.
    const slow = (async (strings: TemplateStringsArray, ...values: unknown[]) => {
      const rows = await h.database.sql(strings, ...values)
      read.resolve()
      await goOn.promise
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
    goOn.resolve()
    assert.equal((await first)?.sessionId, sid)
    assert.equal(await cache.authenticate(token, h.clock.now()), undefined)
  })
})
