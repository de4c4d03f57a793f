import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'
import pg from 'pg'
import { connectReads, type Statements } from '../src/db/sql.ts'
import { AppError } from '../src/errors.ts'
import { administer, type TestDatabase, testDatabase } from './support/database.ts'
import { startProxy } from './support/proxy.ts'
import { waitUntil } from './support/wait-until.ts'

const isUnavailable = (error: unknown) => error instanceof AppError && error.code === 'unavailable'

describe('pipelined statements that read', { timeout: 60_000 }, () => {
  let database: TestDatabase
  let proxy: Awaited<ReturnType<typeof startProxy>>
  let read: Statements
  before(async () => {
    database = await testDatabase()
    proxy = await startProxy(new URL(database.url))
  })
  beforeEach(() => {
    read = connectReads(proxy.url, { maxSilenceMs: 1_000 })
  })
  afterEach(() => read.close())
  after(async () => {
    await proxy.close()
    await database.drop()
  })

  const readPid = async () => (await read<{ pid: number }>`select pg_backend_pid() as pid`)[0]!.pid
  const times = (count: number, run: (i: number) => Promise<unknown>) => Array.from({ length: count }, (_, i) => run(i))

  test('1,000 concurrent statements use two connections, and each statement gets its own reply', async () => {
    const pids = new Set<number>()
    await Promise.all(
      times(1_000, async i => {
        const [row] = await read<{ i: number; pid: number }>`select ${i}::int as i, pg_backend_pid() as pid`
        assert.equal(row!.i, i)
        pids.add(row!.pid)
      }),
    )
    assert.equal(pids.size, 2)
    assert.deepEqual(read.pipeline.stats(), { total: 2, idle: 2, waiting: 0 })
  })

  test('a statement that fails does not make concurrent statements fail', async () => {
    const outcomes = await Promise.allSettled(times(200, i => read`select 1 / (${i}::int % 10) as quotient`))
    for (const [i, outcome] of outcomes.entries()) {
      if (i % 10 > 0) assert.equal(outcome.status, 'fulfilled', `${i}`)
      else assert.ok(outcome.status === 'rejected' && outcome.reason instanceof pg.DatabaseError, `${i}`)
    }
  })

  test('a hundred statements from one turn of the event loop are sent in fewer than 20 writes', async () => {
    await Promise.all(times(2, readPid))
    const writesBefore = proxy.countWrites()
    await Promise.all(times(100, i => read`select ${i}::int as i`))
    assert.ok(proxy.countWrites() - writesBefore < 20, `${proxy.countWrites() - writesBefore} writes`)
  })

  test('a slow statement does not delay statements on the other connection', async () => {
    const slow = read`select pg_sleep(0.5)`
    let isDone = false
    void slow.then(() => {
      isDone = true
    })
    for (let i = 0; i < 20; i += 1) await read`select ${i}::int as i`
    assert.equal(isDone, false)
    await slow
  })

  test('a connection that has waited 5 s for a reply gets no more statements; if both connections wait, statements fail', async t => {
    let passedMs = 0
    const now = performance.now.bind(performance)
    t.mock.method(performance, 'now', () => now() + passedMs)
    const reads = connectReads(database.url)
    const waiting: Promise<unknown>[] = []
    await database.sql.begin(async tx => {
      await tx`select pg_advisory_xact_lock(1)`
      waiting.push(reads`select from pg_advisory_xact_lock_shared(1)`)
      passedMs = 5_000
      await Promise.all(times(20, i => reads`select ${i}::int as i`))
      waiting.push(reads`select from pg_advisory_xact_lock_shared(1)`)
      passedMs = 10_000
      await assert.rejects(reads`select 1`, isUnavailable)
    })
    await Promise.all(waiting)
    assert.deepEqual(await reads`select 1 as one`, [{ one: 1 }])
    await reads.close()
  })

  test('statements on a lost connection fail with `unavailable`, and the next statement opens a new connection', async () => {
    const [pid] = await Promise.all(times(2, readPid))
    const statements = [read`select pg_sleep(5)`, read`select pg_sleep(5)`, readPid(), readPid()]
    const outcomes = Promise.allSettled(statements)
    await database.sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and application_name = 'courtside-reads'`
    for (const outcome of await outcomes) assert.ok(outcome.status === 'rejected' && isUnavailable(outcome.reason))
    assert.notEqual(await readPid(), pid)
    assert.deepEqual(read.pipeline.stats(), { total: 1, idle: 1, waiting: 0 })
  })

  test('statements on a silent connection fail in bounded time, and the next statement opens a new connection', async () => {
    const pid = await readPid()
    proxy.setSilent(true)
    const outcomes = await Promise.allSettled([readPid(), readPid(), readPid()])
    proxy.setSilent(false)
    for (const outcome of outcomes) assert.ok(outcome.status === 'rejected' && isUnavailable(outcome.reason))
    assert.notEqual(await readPid(), pid)
  })

  test('statements fail with `unavailable` if no host answers', async () => {
    const unreachable = connectReads('postgres://nobody@127.0.0.1:1,127.0.0.1:2/none')
    for (const outcome of await Promise.allSettled([unreachable`select 1`, unreachable`select 2`])) {
      assert.ok(outcome.status === 'rejected' && isUnavailable(outcome.reason))
    }
    await unreachable.close()
  })

  test('statements in flight get their replies before `close` closes the connections', async () => {
    const reads = Promise.all(times(50, i => read`select ${i}::int as i, pg_sleep(0.01)`))
    await waitUntil(() => read.pipeline.stats().waiting >= 48)
    await readPid()
    await read.close()
    assert.equal((await reads).length, 50)
    await assert.rejects(readPid, isUnavailable)
  })

  test('statements use the connection that works while the other connection cannot be opened', async () => {
    await Promise.all(times(2, readPid))
    const [lost] = await Promise.all(times(2, readPid))
    const name = new URL(database.url).pathname.slice(1)
    await administer(`alter database ${name} allow_connections false`)
    try {
      await database.sql`select pg_terminate_backend(${lost}::int)`
      await waitUntil(() => read.pipeline.stats().total === 1)
      for (let i = 0; i < 100; i += 1) await Promise.all(times(3, readPid))
    } finally {
      await administer(`alter database ${name} allow_connections true`)
    }
  })
})
