import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { suite, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import type { Delivery } from '../src/outbox/outbox.ts'
import { startWorkers } from '../src/outbox/workers.ts'
import { NOW, outbox } from './support/outbox.ts'
import { waitUntil } from './support/wait-until.ts'

const WORKER_PROGRAM = new URL('./support/worker.ts', import.meta.url).pathname

/** Returns a function for a worker that records the payloads of its deliveries, after `ms` milliseconds. */
function recorder(ms = 0) {
  const delivered: unknown[] = []
  return {
    delivered,
    async deliver({ payload }: Delivery) {
      await delay(ms)
      delivered.push(payload)
      return { outcome: 'delivered' }
    },
  }
}

const addressList = (count: number) => Array.from({ length: count }, (_, index) => `player${index}@example.com`)

suite('the worker', { concurrency: true, timeout: 90_000 }, () => {
  test('four concurrent workers mail each of fifty codes exactly once', async t => {
    const box = await outbox(t)
    const addresses = addressList(50)
    await Promise.all(addresses.map(address => box.ask(address)))
    const workers = [box.work(), box.work(), box.work(), box.work()]
    await box.smtp.until(() => box.smtp.mails.length >= 50)
    await Promise.all(workers.map(worker => worker.stop()))
    assert.deepEqual(box.smtp.mails.flatMap(mail => mail.to).sort(), addresses.sort())
    assert.deepEqual(await box.rows(), [])
  })

  test('a worker that has finished some rows claims the next rows without waiting for its poll', async t => {
    const box = await outbox(t)
    await box.add(Array.from({ length: 40 }, () => ({})))
    const { delivered, deliver } = recorder()
    let polls = 0
    const prepare = async () => {
      polls += 1
    }
    // With one place, a worker claims at most two rows at a time.
    const channel = {
      name: 'mail',
      classes: [2],
      findRetryClass: (failed: number) => failed,
      places: 1,
      deliver,
      prepare,
    }
    const worker = startWorkers(box.url, [channel], { log: pino({ level: 'silent' }), now: () => NOW, observe() {} })
    await waitUntil(() => delivered.length === 40).finally(worker.stop)
    assert.ok(polls < 10, `${polls} polls`)
  })

  test('if a worker is killed under load, another worker sends within 15 s what the killed worker held', async t => {
    const box = await outbox(t, 'hold')
    const addresses = addressList(30)
    await Promise.all(addresses.map(address => box.ask(address)))
    const child = spawn(process.execPath, [WORKER_PROGRAM, box.url, box.smtp.url], { stdio: 'inherit' })
    await box.smtp.until(() => box.smtp.held.length === 4)
    const held = (await box.rows()).filter(row => row.lease !== null).length
    assert.ok(held >= 4)
    child.kill('SIGKILL')
    const killed = performance.now()
    await once(child, 'exit')
    // The mail server drops the four mails that it has received from the killed worker.
    box.smtp.held.splice(0)
    box.smtp.mode = 'accept'
    const other = box.work()
    await box.smtp.until(() => box.smtp.mails.length === 30)
    assert.ok(performance.now() - killed < 15_000)
    await other.stop()
    assert.deepEqual(box.smtp.mails.flatMap(mail => mail.to).sort(), addresses.sort())
    assert.deepEqual(await box.rows(), [])
  })

  test('a worker keeps a delivery that takes longer than a lease', async t => {
    const box = await outbox(t)
    const { delivered, deliver } = recorder(13_000)
    await box.add([{ payload: 'slow' }])
    const workers = [box.start(deliver), box.start(deliver)]
    await waitUntil(() => delivered.length > 0, 60_000)
    await Promise.all(workers.map(worker => worker.stop()))
    assert.deepEqual(delivered, ['slow'])
    assert.deepEqual(await box.rows(), [])
  })

  test('a worker that loses its connections while it finishes a delivery does not send the mail again', async t => {
    const box = await outbox(t, 'hold')
    await box.ask('first@example.com')
    const only = box.work()
    await box.smtp.until(() => box.smtp.held.length === 1)
    await box.sql.begin(async sql => {
      await sql`select id from outbox for update`
      box.smtp.mode = 'accept'
      box.smtp.release()
      const backends = () => sql<{ pid: number; waits: boolean }>`
        select pid, wait_event_type = 'Lock' as waits from pg_stat_activity
        where datname = current_database() and application_name = 'courtside-worker'`
      await waitUntil(async () => (await backends()).some(backend => backend.waits))
      for (const { pid } of await backends()) await sql`select pg_terminate_backend(${pid})`
    })
    await box.ask('second@example.com')
    await box.smtp.until(() => box.smtp.mails.length === 2)
    await only.stop()
    assert.deepEqual(
      box.smtp.mails.flatMap(mail => mail.to),
      ['first@example.com', 'second@example.com'],
    )
    assert.deepEqual(await box.rows(), [])
  })

  test('a silent mail server gets one connection for each place, and the mails when it replies again', async t => {
    const box = await outbox(t, 'silent')
    await Promise.all(addressList(9).map(address => box.ask(address, { now: new Date() })))
    const only = box.work({ places: 3, now: () => new Date() })
    await box.smtp.until(() => box.smtp.seen.connections === 3)
    await delay(1_500)
    assert.equal(box.smtp.seen.connections, 3)
    box.smtp.mode = 'accept'
    await box.smtp.until(() => box.smtp.mails.length === 9)
    await only.stop()
    assert.deepEqual(await box.rows(), [])
  })

  test('a worker stops within 10 s in spite of a silent mail server, and the next worker sends the mail', async t => {
    const box = await outbox(t, 'silent')
    await box.ask('zoe@example.com')
    const first = box.work()
    await box.smtp.until(() => box.smtp.seen.connections === 1)
    const stopped = performance.now()
    await first.stop()
    assert.ok(performance.now() - stopped < 10_000)
    box.smtp.mode = 'accept'
    box.work()
    await box.smtp.until(() => box.smtp.mails.length === 1)
  })

  test('a worker that stops gives the rows back that it has claimed but not begun, with their attempts', async t => {
    const box = await outbox(t, 'silent')
    await Promise.all(addressList(8).map(address => box.ask(address)))
    const first = box.work({ places: 1 })
    await box.smtp.until(() => box.smtp.seen.connections === 1)
    await first.stop()
    const rows = await box.rows()
    assert.equal(rows.filter(row => row.lease !== null).length, 1)
    assert.deepEqual(rows.map(row => row.attempts).sort(), [0, 0, 0, 0, 0, 0, 0, 1])
  })

  test('a worker that stops gives a row back whose random wait has not ended', async t => {
    const box = await outbox(t)
    await box.add([{}])
    const worker = box.start(() => assert.fail('the delivery has begun'), { maxStartDelayMs: 600_000 })
    await waitUntil(async () => (await box.rows())[0]!.lease !== null)
    await worker.stop()
    const [row] = await box.rows()
    assert.deepEqual([row!.lease, row!.ready, row!.attempts], [null, true, 0])
  })

  test('a known client goes before a thousand accounts and sign-ups that wait, even if one network has most of them', async t => {
    const box = await outbox(t)
    await box.sql`
      insert into outbox (channel, class, network, created_at, due, payload)
      select 'mail', 2 + n % 2, 'crowd', now(), now(), to_jsonb(n) from generate_series(1, 1000) as n`
    await box.add([
      { class: 3, network: 'quiet', payload: 'sign-up' },
      { class: 2, network: 'quiet', payload: 'account' },
    ])
    const { delivered, deliver } = recorder(20)
    box.start(deliver, { places: 1 })
    await waitUntil(() => delivered.length > 20)
    assert.ok(delivered.includes('account'))
    await box.add([{ class: 1, network: 'crowd', payload: 'known client' }])
    const before = delivered.length
    await waitUntil(() => delivered.includes('known client'))
    // The worker polls each second, and may have claimed a few other rows before.
    assert.ok(delivered.indexOf('known client') - before < 200)
    assert.ok(!delivered.includes('sign-up'))
  })
})
