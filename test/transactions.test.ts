import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { connect, type Sql } from '../src/db/sql.ts'
import { harness } from './support/app.ts'
import { waitsForLock } from './support/database.ts'
import { makeUser } from './support/factories.ts'
import { startProxy } from './support/proxy.ts'
import { waitUntil } from './support/wait-until.ts'

const h = harness()

test('`begin` is sent with the first statement, and `commit` with the last statements', async () => {
  const proxy = await startProxy(new URL(h.database.url))
  const sql = connect(proxy.url, { max: 1 })
  await sql.begin(tx => tx`select 1`)
  const before = proxy.countWrites()
  await sql.begin(async tx => {
    await Promise.all([tx`select 2`, tx`select 3`])
    void tx`select 4`
    void tx`select 5`
  })
  assert.equal(proxy.countWrites() - before, 2)
  await sql.close()
  await proxy.close()
})

test('a transaction without a statement sends nothing', async () => {
  const proxy = await startProxy(new URL(h.database.url))
  const sql = connect(proxy.url, { max: 1 })
  await sql.begin(tx => tx`select 1`)
  const before = proxy.countWrites()
  assert.equal(await sql.begin(async () => 6), 6)
  await assert.rejects(
    sql.begin(async () => {
      throw new Error('no statement')
    }),
    /no statement/,
  )
  assert.equal(proxy.countWrites(), before)
  await sql.close()
  await proxy.close()
})

test('if `begin` fails, the first statement does not run', async () => {
  const breakBegin = (request: string) => request.replace('begin\0', 'begun\0')
  const proxy = await startProxy(new URL(h.database.url), undefined, breakBegin)
  const sql = connect(proxy.url, { max: 1 })
  const user = await makeUser(h)
  const rename = (name: string) => (tx: Sql) => tx`update app_user set first_name = ${name} where id = ${user.id}`
  await assert.rejects(sql.begin(rename('Zoé')), { code: '42601' })
  await assert.rejects(sql.begin(rename('Zoé')), { code: '42601' })
  assert.equal((await h.database.sql`select from app_user where first_name = 'Zoé' and id = ${user.id}`).length, 0)
  // The same bytes of a client whose `begin` works.
  const direct = connect(h.database.url, { max: 1 })
  await direct.begin(rename('Zoé'))
  assert.equal((await h.database.sql`select from app_user where first_name = 'Zoé' and id = ${user.id}`).length, 1)
  await Promise.all([sql.close(), direct.close()])
  await proxy.close()
})

test('if the first statement cannot be parsed, the same connection can run it later', async t => {
  const sql = connect(h.database.url, { max: 1 })
  t.after(() => sql.close())
  const read = () => sql.begin(tx => tx`select n from late_table`)
  await assert.rejects(read(), { code: '42P01' })
  await h.database.sql`create table late_table as select 1 as n`
  for (const _ of [1, 2]) assert.deepEqual(await read(), [{ n: 1 }])
  await h.database.sql`drop table late_table`
})

test('a statement may be sent again while PostgreSQL parses it as the first one of a transaction', async t => {
  const sql = connect(h.database.url, { max: 1 })
  t.after(() => sql.close())
  await h.database.sql`create table locked_table as select 1 as n`
  const { promise: isSentAgain, resolve: sendAgain } = Promise.withResolvers<void>()
  const read = (tx: Sql) => tx`select n from locked_table`
  let results: Promise<unknown> | undefined
  await h.database.sql.begin(async tx => {
    await tx`lock table locked_table`
    results = sql.begin(async inner => {
      const first = read(inner)
      await isSentAgain
      return Promise.all([first, read(inner)])
    })
    // The parse waits for the lock of the table, so `begin` has been replied to.
    await waitUntil(() => waitsForLock(h.database.sql, 'select n from locked_table'))
    sendAgain()
    await nextTurn()
  })
  assert.deepEqual(await results, [[{ n: 1 }], [{ n: 1 }]])
  await h.database.sql`drop table locked_table`
})

test('the first statement of a transaction may be a savepoint, and a statement with parameters may be repeated', async () => {
  const { sql } = h.database
  for (const round of [1, 2]) {
    assert.deepEqual(await sql.begin(tx => tx.begin(inner => inner`select ${round}::integer as round`)), [{ round }])
    assert.deepEqual(await sql.begin(tx => tx`select ${round}::integer as round`), [{ round }])
  }
})

test('if the last statement of a transaction fails without being awaited, `begin` throws and rolls back', async () => {
  const { sql } = h.database
  const user = await makeUser(h)
  const readProfile = () => sql`select locale from app_user where id = ${user.id}`
  const before = await readProfile()
  const update = (divisor: number) => async (tx: Sql) => {
    await tx`update app_user set locale = 'en' where id = ${user.id}`
    void tx`select 1 / ${divisor}::integer`
  }
  const others = [
    update(0),
    // The statement that `work` waits for fails only because the statement before it has failed.
    async (tx: Sql) => {
      await update(0)(tx)
      await tx`select 1`
    },
    (tx: Sql) => tx.begin(update(0)),
  ]
  for (const work of others) {
    await assert.rejects(sql.begin(work), { code: '22012' })
    assert.deepEqual(await readProfile(), before)
  }
  // The transaction goes on after a savepoint that was rolled back.
  await sql.begin(async tx => {
    await assert.rejects(tx.begin(update(0)), { code: '22012' })
    await update(1)(tx)
  })
  assert.deepEqual(await readProfile(), [{ locale: 'en' }])
})
