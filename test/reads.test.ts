import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'
import pg from 'pg'
import { connectReads, type Statements } from '../src/db/sql.ts'
import { AppError } from '../src/errors.ts'
import { type TestDatabase, testDatabase } from './support/database.ts'
import { wire } from './support/wire.ts'

const isUnavailable = (error: unknown) => error instanceof AppError && error.code === 'unavailable'

describe('reads, of which many are sent before the first is answered', { timeout: 60_000 }, () => {
  let database: TestDatabase
  let line: Awaited<ReturnType<typeof wire>>
  let read: Statements
  before(async () => {
    database = await testDatabase()
    line = await wire(new URL(database.url))
  })
  beforeEach(() => {
    read = connectReads(line.url, { maxSilenceMs: 1_000 })
  })
  afterEach(() => read.close())
  after(async () => {
    await line.close()
    await database.drop()
  })

  const pidOf = async () => (await read<{ pid: number }>`select pg_backend_pid() as pid`)[0]!.pid
  const asked = (count: number, one: (i: number) => Promise<unknown>) => Array.from({ length: count }, (_, i) => one(i))

  test('each gets its own answer, from two connections', async () => {
    const pids = new Set<number>()
    await Promise.all(
      asked(1_000, async i => {
        const [row] = await read<{ i: number; pid: number }>`select ${i}::int as i, pg_backend_pid() as pid`
        assert.equal(row!.i, i)
        pids.add(row!.pid)
      }),
    )
    assert.equal(pids.size, 2)
    assert.deepEqual(read.pipeline.stats(), { total: 2, idle: 2, waiting: 0 })
  })

  test('one that fails is the only one', async () => {
    const outcomes = await Promise.allSettled(asked(200, i => read`select 1 / (${i}::int % 10) as quotient`))
    for (const [i, outcome] of outcomes.entries()) {
      if (i % 10 > 0) assert.equal(outcome.status, 'fulfilled', `${i}`)
      else assert.ok(outcome.status === 'rejected' && outcome.reason instanceof pg.DatabaseError, `${i}`)
    }
  })

  test('leave together: so many in few writes', async () => {
    await Promise.all(asked(2, pidOf))
    const before = line.writes()
    await Promise.all(asked(100, i => read`select ${i}::int as i`))
    assert.ok(line.writes() - before < 20, `${line.writes() - before} writes`)
  })

  test('a slow one keeps none of the other connection waiting', async () => {
    const slow = read`select pg_sleep(0.5)`
    let answered = false
    void slow.then(() => {
      answered = true
    })
    for (let i = 0; i < 20; i += 1) await read`select ${i}::int as i`
    assert.equal(answered, false)
    await slow
  })

  test('nothing is sent behind one that has waited for 5 s, and nothing at all when each connection has', async t => {
    let passedMs = 0
    const now = performance.now.bind(performance)
    t.mock.method(performance, 'now', () => now() + passedMs)
    const patient = connectReads(database.url)
    const waiting: Promise<unknown>[] = []
    await database.sql.begin(async tx => {
      await tx`select pg_advisory_xact_lock(1)`
      waiting.push(patient`select from pg_advisory_xact_lock_shared(1)`)
      passedMs = 5_000
      await Promise.all(asked(20, i => patient`select ${i}::int as i`))
      waiting.push(patient`select from pg_advisory_xact_lock_shared(1)`)
      passedMs = 10_000
      await assert.rejects(patient`select 1`, isUnavailable)
    })
    await Promise.all(waiting)
    assert.deepEqual(await patient`select 1 as one`, [{ one: 1 }])
    await patient.close()
  })

  test('a lost connection: what was sent on it is unavailable, and the next opens another', async () => {
    const pid = await pidOf()
    const sleeping = [read`select pg_sleep(5)`, read`select pg_sleep(5)`, pidOf(), pidOf()]
    const outcomes = Promise.allSettled(sleeping)
    await database.sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and application_name = 'courtside-reads'`
    for (const outcome of await outcomes) assert.ok(outcome.status === 'rejected' && isUnavailable(outcome.reason))
    assert.notEqual(await pidOf(), pid)
    assert.deepEqual(read.pipeline.stats(), { total: 1, idle: 1, waiting: 0 })
  })

  test('a silent one: unavailable in bounded time, and left', async () => {
    const pid = await pidOf()
    line.hush(true)
    const outcomes = await Promise.allSettled([pidOf(), pidOf(), pidOf()])
    line.hush(false)
    for (const outcome of outcomes) assert.ok(outcome.status === 'rejected' && isUnavailable(outcome.reason))
    assert.notEqual(await pidOf(), pid)
  })

  test('none to be had: unavailable', async () => {
    const nowhere = connectReads('postgres://nobody@127.0.0.1:1,127.0.0.1:2/none')
    for (const outcome of await Promise.allSettled([nowhere`select 1`, nowhere`select 2`])) {
      assert.ok(outcome.status === 'rejected' && isUnavailable(outcome.reason))
    }
    await nowhere.close()
  })

  test('are answered before the connections close', async () => {
    const asking = Promise.all(asked(50, i => read`select ${i}::int as i, pg_sleep(0.01)`))
    while (read.pipeline.stats().waiting < 48) await new Promise(setImmediate)
    await pidOf()
    await read.close()
    assert.equal((await asking).length, 50)
    await assert.rejects(pidOf, isUnavailable)
  })
})
