import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setInterval as ticks } from 'node:timers/promises'
import { connect } from '../src/db/sql.ts'
import { AppError } from '../src/errors.ts'
import { administer, testDatabase } from './support/database.ts'
import { wire } from './support/wire.ts'

const isUnavailable = (error: unknown) => error instanceof AppError && error.code === 'unavailable'

/** Connections with little patience, one of each kind, to a database that can be made silent. */
async function behindWire() {
  const database = await testDatabase()
  const line = await wire(new URL(database.url))
  const sql = connect(line.url, { connections: 1, max: 1, maxSilenceMs: 300 })
  const close = async () => {
    await sql.close()
    await line.close()
    await database.drop()
  }
  return { line, sql, close }
}

test('a database that falls silent: unavailable in bounded time, and its connections are left', async () => {
  const { line, sql, close } = await behindWire()
  await sql`select 1`
  line.hush(true)
  await assert.rejects(sql`select 2`, isUnavailable)
  line.hush(false)
  assert.deepEqual(await sql`select 3 as three`, [{ three: 3 }])
  const asked = sql.begin(async tx => {
    await tx`select 4`
    line.hush(true)
    await tx`select 5`
  })
  await assert.rejects(asked, isUnavailable)
  line.hush(false)
  assert.deepEqual(await sql`select 6 as six`, [{ six: 6 }])
  await close()
})

test('and so it is while ever more is asked', async () => {
  const { line, sql, close } = await behindWire()
  await sql`select 1`
  line.hush(true)
  const refused: unknown[] = []
  for await (const _ of ticks(20)) {
    sql`select 2`.catch(error => refused.push(error))
    if (refused.length > 0) break
  }
  line.hush(false)
  assert.ok(refused.every(isUnavailable))
  await close()
})

test('an answer that is not ended is none: unavailable', async () => {
  const { line, sql, close } = await behindWire()
  await sql`select 1`
  line.hushAfter(1_000_000)
  const asked = [sql`select repeat('a', 100) as text from generate_series(1, 100000)`, sql`select 2`]
  for (const outcome of await Promise.allSettled(asked)) {
    assert.ok(outcome.status === 'rejected' && isUnavailable(outcome.reason))
  }
  line.hush(false)
  assert.deepEqual(await sql`select 3 as three`, [{ three: 3 }])
  await close()
})

test('a server that has become read-only is left too, within a transaction', async () => {
  const database = await testDatabase()
  const sql = connect(database.url, { max: 1 })
  const pid = async () => (await sql.begin(tx => tx<{ pid: number }>`select pg_backend_pid() as pid`))[0]!.pid
  const before = await pid()
  const written = sql.begin(async tx => {
    await tx`set transaction read only`
    await tx`insert into missed_guess (slot) values (99)`
  })
  await assert.rejects(written, isUnavailable)
  assert.notEqual(await pid(), before)
  await sql.close()
  await database.drop()
})

test('and so it is by a single statement, while one that fails for a reason of its own keeps its connection', async () => {
  const database = await testDatabase()
  const name = new URL(database.url).pathname.slice(1)
  const sql = connect(database.url, { connections: 1 })
  const pid = async () => (await sql<{ pid: number }>`select pg_backend_pid() as pid`)[0]!.pid
  await administer(`alter database ${name} set default_transaction_read_only = on`)
  const before = await pid()
  await assert.rejects(sql`select 1 / 0`, /division by zero/)
  assert.equal(await pid(), before)
  await administer(`alter database ${name} reset default_transaction_read_only`)
  let behind: Promise<unknown> | undefined
  await database.sql.begin(async tx => {
    await tx`select pg_advisory_xact_lock(1)`
    const refused = sql`insert into missed_guess (slot) values (99)`
    behind = sql`select 1 as one from pg_advisory_xact_lock_shared(1)`
    await assert.rejects(refused, isUnavailable)
    // At once, though the old connection still owes an answer.
    assert.notEqual(await pid(), before)
    await sql`insert into missed_guess (slot) values (99)`
  })
  assert.deepEqual(await behind, [{ one: 1 }])
  await sql.close()
  await database.drop()
})
