import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { connect } from '../src/db/sql.ts'
import { type Delivery, renew } from '../src/outbox/outbox.ts'
import { administer } from './support/database.ts'
import { outbox } from './support/outbox.ts'
import { waitUntil } from './support/wait-until.ts'

const addressList = (count: number) => Array.from({ length: count }, (_, index) => `player${index}@example.com`)

suite('workers during faults of the database', { concurrency: true, timeout: 120_000 }, () => {
  // A lease lasts 10 s, and a statement times out after 30 s.
  for (const seconds of [12, 40]) {
    test(`after another transaction has locked the outbox exclusively for ${seconds} s, each mail leaves once`, async t => {
      const box = await outbox(t, 'slow')
      const addresses = addressList(12)
      await Promise.all(addresses.map(address => box.ask(address)))
      const workers = [box.work(), box.work()]
      await box.smtp.until(() => box.smtp.mails.length > 0)
      await box.sql.begin(async sql => {
        await sql`lock table outbox in access exclusive mode`
        await delay(seconds * 1_000)
      })
      await waitUntil(async () => (await box.rows()).length === 0, 60_000)
      await Promise.all(workers.map(worker => worker.stop()))
      assert.deepEqual([...new Set(box.smtp.mails.flatMap(mail => mail.to))].sort(), addresses.sort())
      assert.equal(box.smtp.mails.length, 12)
    })
  }

  test('after a fault, a worker leaves lapsed leases to the workers that can renew them again', async t => {
    const box = await outbox(t)
    const delivered: Delivery[] = []
    const other = box.start(async delivery => {
      delivered.push(delivery)
      return { outcome: 'delivered' }
    })
    // After this time, the worker takes over lapsed leases.
    await delay(12_000)
    const [held] = await box.sql<{ id: number; lease: string }>`
      insert into outbox (channel, class, created_at, due, payload, lease, leased_until)
      values ('mail', 2, now(), now(), '{}', gen_random_uuid(), clock_timestamp() + interval '10 seconds')
      returning id, lease`
    await box.sql.begin(async sql => {
      await sql`lock table outbox in access exclusive mode`
      await delay(12_000)
    })
    await delay(3_000)
    assert.equal((await renew(box.sql, [held!])).size, 1)
    assert.deepEqual(delivered, [])
    await waitUntil(() => delivered.length === 1, 60_000)
    await other.stop()
    assert.deepEqual(await box.rows(), [])
  })

  const defaults: [string, string][] = [
    ['default_transaction_isolation', 'serializable'],
    ['datestyle', "'German, DMY'"],
    ['timezone', "'America/Lima'"],
    ['statement_timeout', "'50ms'"],
    ['search_path', 'unusual, public'],
    ['role', 'unusual'],
    ['bytea_output', 'escape'],
  ]
  test('with unusual session defaults of the database, twenty mails leave', async t => {
    const box = await outbox(t)
    const name = new URL(box.url).pathname.slice(1)
    await box.sql`create schema unusual`
    await administer('do $$ begin create role unusual; exception when duplicate_object then null; end $$')
    await box.sql`grant all on schema courtside, unusual to unusual`
    await box.sql`grant all on all tables in schema courtside to unusual`
    for (const [setting, value] of defaults) await administer(`alter database ${name} set ${setting} = ${value}`)
    const sql = connect(box.url)
    try {
      const [session] = await sql`select current_user as role, current_setting('search_path') as path`
      assert.deepEqual(session, { role: 'unusual', path: 'courtside, pg_temp' })
      const addresses = addressList(20)
      await Promise.all(addresses.map(address => box.ask(address, { on: sql })))
      const workers = [box.work({ sql }), box.work({ sql })]
      await waitUntil(async () => (await box.rows()).length === 0)
      await Promise.all(workers.map(worker => worker.stop()))
      assert.deepEqual(box.smtp.mails.flatMap(mail => mail.to).sort(), addresses.sort())
    } finally {
      await sql.close()
    }
  })
})
