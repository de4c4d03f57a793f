import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { AppError } from '../src/errors.ts'
import { Slots } from '../src/http/slots.ts'
import { anotherApp, harness } from './support/app.ts'
import { makeNotifications, makeUser } from './support/factories.ts'
import { WITH_BUDGETS } from './support/strangers.ts'
import { waitUntil } from './support/wait-until.ts'

const h = harness()

const SLOTS = 64
const READ_SLOTS = 256
/** The number of strangers' guesses that run at the same time. */
const MAX_UNCOUNTED = 10

test('while all slots for writes are taken, a further write gets a 503, and reads are answered', async () => {
  const user = await makeUser(h)
  const [locked, other] = (await makeNotifications(h, user.id, 2)) as [number, number]
  const markRead = (id: number) => h.call('POST', `/api/v1/notifications/${id}/read`, { token: user.token })
  // Afterwards the session is in the cache, so the requests send only the statements that wait.
  await h.call('GET', '/api/v1/auth/me', { token: user.token })
  const { waiting } = await h.database.sql.begin(async tx => {
    await tx`select from notification where id = ${locked} for update`
    const waiting = Array.from({ length: SLOTS }, () => markRead(locked))
    await waitUntil(() => {
      const { waiting, total, idle } = h.ctx.sql.pipeline.stats()
      return waiting + total - idle === SLOTS
    })
    const refused = await markRead(other)
    assert.equal(refused.status, 503)
    assert.match(refused.headers['retry-after']!, /^[123]$/)
    for (const path of ['/api/v1/notifications', '/api/v1/auth/me', '/healthz', '/readyz']) {
      assert.equal((await h.call('GET', path, { token: user.token })).status, 200, path)
    }
    return { waiting }
  })
  assert.deepEqual(new Set((await Promise.all(waiting)).map(({ status }) => status)), new Set([200]))
  assert.equal((await markRead(other)).status, 200)
})

test('while all slots for reads are taken, a further read gets a 503, and writes are answered', async () => {
  const user = await makeUser(h)
  const list = () => h.call('GET', '/api/v1/notifications', { token: user.token })
  await h.call('GET', '/api/v1/auth/me', { token: user.token })
  const { waiting } = await h.database.sql.begin(async tx => {
    await tx`lock table notification in access exclusive mode`
    const waiting = Array.from({ length: READ_SLOTS }, list)
    const refused = await list()
    assert.equal(refused.status, 503)
    assert.equal((await h.call('POST', '/api/v1/auth/refresh', { token: user.token })).status, 200)
    return { waiting }
  })
  assert.deepEqual(new Set((await Promise.all(waiting)).map(({ status }) => status)), new Set([200]))
})

test('while guesses of strangers take all their slots, requests of known users are answered', async t => {
  const other = await anotherApp(h, { ...WITH_BUDGETS, WRITE_CONNECTIONS: '16' })
  t.after(other.close)
  const [user, victim] = [await makeUser(h), await makeUser(h)]
  const [id] = await makeNotifications(h, user.id, 1)
  const markRead = () => other.call('POST', `/api/v1/notifications/${id}/read`, { token: user.token })
  const guess = (email: string, token?: string) =>
    other.call('POST', '/api/v1/auth/verify-otp', { body: { email, code: '0000' }, token })
  await other.call('POST', '/api/v1/auth/request-otp', { body: { email: victim.email } })
  // With all connections open, the guesses leave connections without a waiting statement.
  await waitUntil(async () => {
    await Promise.all(Array.from({ length: 40 }, markRead))
    return other.ctx.sql.pipeline.stats().total === 16
  })
  const guesses = await h.database.sql.begin(async tx => {
    await tx`select from sign_in_address where email = ${victim.email} for update`
    const guesses = Array.from({ length: SLOTS + 1 }, () => guess(victim.email))
    await waitUntil(() => {
      const { waiting, total, idle } = other.ctx.sql.pipeline.stats()
      return waiting + total - idle === MAX_UNCOUNTED
    })
    // All slots are taken when the first guess is refused. The others wait for the lock.
    const refused = await Promise.race(guesses)
    assert.equal(refused.status, 503)
    assert.match(refused.headers['retry-after']!, /^[123]$/)
    assert.equal((await markRead()).status, 200)
    assert.equal((await guess(user.email, user.token)).body.code, 'otp_invalid')
    assert.equal((await other.call('POST', '/api/v1/auth/refresh', { token: user.token })).status, 200)
    return guesses
  })
  const statuses = (await Promise.all(guesses)).map(({ status }) => status)
  assert.deepEqual(statuses.toSorted(), [...Array.from({ length: SLOTS }, () => 422), 503])
})

test('a refusal for lack of a slot is not logged as a fault of the database', () => {
  assert.deepEqual(
    h.logged.filter(({ msg }) => msg === 'database unavailable'),
    [],
  )
})

test('WRITE_CONNECTIONS is the number of connections for requests that write', async () => {
  const user = await makeUser(h)
  const [id] = await makeNotifications(h, user.id, 1)
  for (const count of [1, 7]) {
    const other = await anotherApp(h, { WRITE_CONNECTIONS: String(count) })
    const requestAtOnce = () =>
      Promise.all(
        Array.from({ length: 20 }, () => other.call('POST', `/api/v1/notifications/${id}/read`, { token: user.token })),
      )
    for (let round = 0; round < 5; round += 1) await requestAtOnce()
    await waitUntil(async () => {
      await requestAtOnce()
      return other.ctx.sql.pipeline.stats().total >= count
    })
    assert.equal(other.ctx.sql.pipeline.stats().total, count)
    await other.close()
  }
})

describe('slots', () => {
  test('requests that wait get the slots that become free in the order of their arrival', async () => {
    const slots = new Slots(SLOTS)
    const ends: (() => void)[] = []
    const started: number[] = []
    const works = Array.from({ length: SLOTS + 3 }, (_, index) =>
      slots.run(() => {
        started.push(index)
        const { promise, resolve } = Promise.withResolvers<void>()
        ends.push(resolve)
        return promise
      }),
    )
    assert.deepEqual([started.length, slots.waiting], [SLOTS, 3])
    for (const index of [0, 1, 2]) {
      ends[index]!()
      await works[index]
      await waitUntil(() => started.length === SLOTS + index + 1)
    }
    assert.deepEqual(started.slice(SLOTS), [SLOTS, SLOTS + 1, SLOTS + 2])
    for (const end of ends) end()
    await Promise.all(works)
    assert.equal(slots.waiting, 0)
  })

  test('refused requests get the waits 1, 2 and 3 s by chance, so they do not come back together', async () => {
    const slots = new Slots(SLOTS)
    const end = Promise.withResolvers<void>()
    const works = Array.from({ length: SLOTS }, () => slots.run(() => end.promise))
    const readWait = async () => {
      const error: AppError = await slots.run(() => assert.fail('there was a slot')).catch(error => error)
      return error.headers['retry-after']
    }
    const waits = await Promise.all(Array.from({ length: 300 }, readWait))
    assert.deepEqual([...new Set(waits)].toSorted(), ['1', '2', '3'])
    end.resolve()
    await Promise.all(works)
  })

  test('a request that fails gives its slot back, and a request that is refused takes none', async () => {
    const slots = new Slots(SLOTS)
    for (let round = 0; round < 2; round += 1) {
      await Promise.all(
        Array.from({ length: SLOTS }, () =>
          assert.rejects(
            slots.run(() => Promise.reject(new Error('fault'))),
            /fault/,
          ),
        ),
      )
      const end = Promise.withResolvers<void>()
      const works = Array.from({ length: SLOTS }, () => slots.run(() => end.promise))
      await Promise.all(
        [1, 2, 3].map(() =>
          assert.rejects(
            slots.run(() => 0),
            { code: 'unavailable' },
          ),
        ),
      )
      end.resolve()
      await Promise.all(works)
      assert.equal(await slots.run(() => 'free'), 'free')
    }
  })
})
