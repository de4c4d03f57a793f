import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { Client } from '../src/db/client.ts'
import { connect } from '../src/db/sql.ts'
import { AppError } from '../src/errors.ts'
import { administer, testDatabase } from './support/database.ts'
import { startProxy } from './support/proxy.ts'
import { waitUntil } from './support/wait-until.ts'

const isUnavailable = (error: unknown) => error instanceof AppError && error.code === 'unavailable'

/**
 * Connects to a database through a proxy, with a short `maxSilenceMs`. There is one connection for transactions, and
 * one connection for all other statements.
 */
async function connectThroughProxy() {
  const database = await testDatabase()
  const proxy = await startProxy(new URL(database.url))
  const sql = connect(proxy.url, { connections: 1, max: 1, maxSilenceMs: 300 })
  const close = async () => {
    await sql.close()
    await proxy.close()
    await database.drop()
  }
  return { proxy, sql, close }
}

/** Connects with a URL whose first host is a proxy and whose second host is the database itself. */
async function connectToTwoHosts(t: TestContext) {
  const database = await testDatabase()
  const proxy = await startProxy(new URL(database.url))
  const [first, second] = [new URL(proxy.url).host, new URL(database.url).host]
  const sql = connect(proxy.url.replace(first, `${first},${second}`), { connections: 1, maxSilenceMs: 10_000 })
  t.after(async () => {
    await sql.close()
    await proxy.close()
    await database.drop()
  })
  return { proxy, sql }
}

test('statements to a silent database fail in bounded time, and later statements use new connections', async () => {
  const { proxy, sql, close } = await connectThroughProxy()
  await sql`select 1`
  proxy.setSilent(true)
  await assert.rejects(sql`select 2`, isUnavailable)
  proxy.setSilent(false)
  assert.deepEqual(await sql`select 3 as three`, [{ three: 3 }])
  const transaction = sql.begin(async tx => {
    await tx`select 4`
    proxy.setSilent(true)
    await tx`select 5`
  })
  await assert.rejects(transaction, isUnavailable)
  proxy.setSilent(false)
  assert.deepEqual(await sql`select 6 as six`, [{ six: 6 }])
  await close()
})

test('a silent database is noticed in bounded time even if more statements are sent meanwhile', async () => {
  const { proxy, sql, close } = await connectThroughProxy()
  await sql`select 1`
  proxy.setSilent(true)
  const refused: unknown[] = []
  await waitUntil(async () => {
    sql`select 2`.catch(error => refused.push(error))
    await delay(20)
    return refused.length > 0
  })
  proxy.setSilent(false)
  assert.ok(refused.every(isUnavailable))
  await close()
})

test('a statement whose reply stops halfway fails with `unavailable`', async () => {
  const { proxy, sql, close } = await connectThroughProxy()
  await sql`select 1`
  proxy.silenceAfter(1_000_000)
  const statements = [sql`select repeat('a', 100) as text from generate_series(1, 100000)`, sql`select 2`]
  for (const outcome of await Promise.allSettled(statements)) {
    assert.ok(outcome.status === 'rejected' && isUnavailable(outcome.reason))
  }
  proxy.setSilent(false)
  assert.deepEqual(await sql`select 3 as three`, [{ three: 3 }])
  await close()
})

test('a transaction on a server that became read-only fails, and the next transaction uses a new connection', async () => {
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

test('if a read-only server refuses a statement, the connection of the statement is retired; a division by zero retires no connection', async () => {
  const database = await testDatabase()
  const name = new URL(database.url).pathname.slice(1)
  const sql = connect(database.url, { connections: 1 })
  const pid = async () => (await sql<{ pid: number }>`select pg_backend_pid() as pid`)[0]!.pid
  await administer(`alter database ${name} set default_transaction_read_only = on`)
  const before = await pid()
  await assert.rejects(sql`select 1 / 0`, /division by zero/)
  assert.equal(await pid(), before)
  await administer(`alter database ${name} reset default_transaction_read_only`)
  let stillWaiting: Promise<unknown> | undefined
  await database.sql.begin(async tx => {
    await tx`select pg_advisory_xact_lock(1)`
    const refused = sql`insert into missed_guess (slot) values (99)`
    stillWaiting = sql`select 1 as one from pg_advisory_xact_lock_shared(1)`
    await assert.rejects(refused, isUnavailable)
    // Later statements immediately use a new connection, although `stillWaiting` has no reply on the old connection
    // yet.
    assert.notEqual(await pid(), before)
    await sql`insert into missed_guess (slot) values (99)`
  })
  assert.deepEqual(await stillWaiting, [{ one: 1 }])
  await sql.close()
  await database.drop()
})

test('if a proxy forgets idle connections, only the first statement on each connection is slow', async t => {
  const database = await testDatabase()
  const proxy = await startProxy(new URL(database.url))
  const sql = connect(proxy.url, { connections: 1, max: 1, checkAfterIdleMs: 100 })
  t.after(async () => {
    await sql.close()
    await proxy.close()
    await database.drop()
  })
  await sql`select 1`
  await sql.begin(tx => tx`select 2`)
  proxy.forgetConnections()
  await delay(200)
  const startedMs = performance.now()
  await assert.rejects(sql`select 3`, isUnavailable)
  await assert.rejects(
    sql.begin(tx => tx`select 4`),
    isUnavailable,
  )
  // Without the check, each of the two would wait until `maxSilenceMs`, which is 35 s.
  assert.ok(performance.now() - startedMs < 30_000)
  assert.deepEqual(await sql`select 5 as five`, [{ five: 5 }])
  assert.deepEqual(await sql.begin(tx => tx`select 6 as six`), [{ six: 6 }])
})

test('a slow statement after an idle time keeps its connection', async t => {
  const database = await testDatabase()
  const sql = connect(database.url, { connections: 1, checkAfterIdleMs: 10 })
  t.after(async () => {
    await sql.close()
    await database.drop()
  })
  const pid = async () => (await sql<{ pid: number }>`select pg_backend_pid() as pid`)[0]!.pid
  const before = await pid()
  await delay(50)
  await sql`select pg_sleep(6)`
  assert.equal(await pid(), before)
})

test('a silent statement fails before `maxSilenceMs` if another host is the primary now', async t => {
  const { proxy, sql } = await connectToTwoHosts(t)
  await sql`select 1`
  proxy.setSilent(true)
  await assert.rejects(sql`select 2`, ({ cause }: Error) => /another host is the primary/.test(String(cause)))
  assert.deepEqual(await sql`select 3 as three`, [{ three: 3 }])
})

test('a slow statement keeps its connection if its host is still the primary', async t => {
  const { sql } = await connectToTwoHosts(t)
  const pid = async () => (await sql<{ pid: number }>`select pg_backend_pid() as pid`)[0]!.pid
  const before = await pid()
  await sql`select pg_sleep(6)`
  assert.equal(await pid(), before)
})

test('each connection sets the TCP time-outs with which PostgreSQL notices that a machine is lost', async t => {
  const database = await testDatabase()
  const client = new Client({ connectionString: database.url })
  t.after(async () => {
    await client.end()
    await database.drop()
  })
  await client.connect()
  // PostgreSQL returns the values of the socket.
  const { rows } = await client.query(`select current_setting('tcp_keepalives_idle') as idle,
    current_setting('tcp_keepalives_interval') as interval, current_setting('tcp_user_timeout') as timeout`)
  assert.deepEqual(rows, [{ idle: '60', interval: '10', timeout: '150000' }])
})

test('a statement that fails because the disk or the memory of the server is full fails with `unavailable`', async t => {
  const database = await testDatabase()
  t.after(() => database.drop())
  await assert.rejects(
    database.sql`do $$ begin raise exception 'no space left' using errcode = 'disk_full'; end $$`,
    isUnavailable,
  )
  await assert.rejects(
    database.sql`do $$ begin raise exception 'no memory' using errcode = 'out_of_memory'; end $$`,
    isUnavailable,
  )
})
