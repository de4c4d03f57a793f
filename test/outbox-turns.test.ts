import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import * as rows from '../src/outbox/outbox.ts'
import { Places } from '../src/outbox/places.ts'
import { NOW, outbox } from './support/outbox.ts'
import { waitUntil } from './support/wait-until.ts'

const LAST_NETWORKS = new Map([[2, Buffer.alloc(0)]])

suite('turns and leases', { concurrency: true, timeout: 90_000 }, () => {
  test('a claim does not wait for a row that another worker is claiming', async t => {
    const box = await outbox(t)
    await box.add([{ network: 'a' }, { network: 'b' }])
    await box.sql.begin(async tx => {
      await tx`select id from outbox where network = 'a' for update`
      const claimed = await rows.claim(box.sql, {
        channel: 'mail',
        limit: 5,
        lastNetworks: LAST_NETWORKS,
        lapsedBefore: undefined,
      })
      assert.deepEqual(
        claimed.map(({ network }) => network.toString()),
        ['b'],
      )
    })
  })

  test('a row that a worker gives back is ready at once, and a row that is due later is not', async t => {
    const box = await outbox(t)
    await box.add([{}, {}])
    const claim = { channel: 'mail', limit: 5, lastNetworks: LAST_NETWORKS, lapsedBefore: undefined }
    const [first, second] = await rows.claim(box.sql, claim)
    const later = new Date(NOW.getTime() + 1)
    await rows.finish(
      box.sql,
      [
        { ...first!, due: NOW },
        { ...second!, due: later },
      ],
      NOW,
    )
    assert.deepEqual(
      (await box.rows()).map(row => [row.id === first!.id, row.ready]),
      [
        [true, true],
        [false, false],
      ],
    )
  })

  test('a worker serves thirty networks in turn, although each has more rows than the worker claims at once', async t => {
    const box = await outbox(t)
    await box.sql`
      insert into outbox (channel, class, network, created_at, due, payload)
      select 'mail', 2, int4send(n % 30), ${NOW}, ${NOW}, to_jsonb(n % 30) from generate_series(1, 600) as n`
    const delivered: unknown[] = []
    const worker = box.start(
      async ({ payload }) => {
        delivered.push(payload)
        return { outcome: 'delivered' }
      },
      { places: 1 },
    )
    await waitUntil(() => delivered.length >= 12, 60_000)
    await worker.stop()
    assert.equal(new Set(delivered.slice(0, 12)).size, 12)
  })

  /**
   * Starts a worker with one place, and adds two rows. The first delivery takes the place until `release` is called.
   */
  async function startWithOneRowWaiting(t: Parameters<typeof outbox>[0]) {
    const box = await outbox(t)
    const begun: unknown[] = []
    const { promise, resolve: release } = Promise.withResolvers<void>()
    await box.add([{ payload: 'first' }, { payload: 'second' }])
    box.start(
      async ({ payload }) => {
        begun.push(payload)
        if (begun.length === 1) await promise
        return { outcome: 'delivered' }
      },
      { places: 1 },
    )
    await waitUntil(async () => begun.length === 1 && (await box.rows()).every(({ lease }) => lease !== null))
    // By now, the second row waits for the place.
    await delay(1_000)
    return { box, begun, release }
  }

  test('a delivery does not begin while its lease has less than 3 s left', async t => {
    const { box, begun, release } = await startWithOneRowWaiting(t)
    await box.sql.begin(async tx => {
      await tx`lock table outbox in access exclusive mode`
      // No lease can be renewed, and each was renewed at least 8 s ago.
      await delay(8_500)
      release()
      await delay(2_000)
      assert.equal(begun.length, 1)
    })
    await waitUntil(() => begun.length === 2)
    await waitUntil(async () => (await box.rows()).length === 0)
  })

  test('a delivery does not begin after another worker has taken its row over', async t => {
    const { box, begun, release } = await startWithOneRowWaiting(t)
    const [waiting] = (await box.rows()).filter(({ payload }) => !begun.includes(payload))
    await box.sql`
      update outbox set lease = gen_random_uuid(), leased_until = clock_timestamp() + interval '1 minute'
      where id = ${waiting!.id}`
    // The worker renews its leases every 3 s, and notices the loss then.
    await delay(8_000)
    release()
    await waitUntil(async () => (await box.rows()).length === 1)
    await delay(1_000)
    assert.equal(begun.length, 1)
  })
})

test('a delivery of a lower class takes the next free place before deliveries that have waited longer', async () => {
  const places = new Places(1, true)
  const order: number[] = []
  const takeAll = [2, 3, 1, 2].map(async each => {
    await places.take(each)
    order.push(each)
    places.release()
  })
  await Promise.all(takeAll)
  assert.deepEqual(order, [2, 1, 2, 3])
})

for (const [channel, hasStartDelay, maxClaimed] of [
  ['with a random delay before each delivery', true, 16 + 128],
  ['without such a delay', false, 32],
] as const) {
  test(`after quick deliveries, a worker with 16 places claims at most ${maxClaimed} rows ${channel}`, async () => {
    const places = new Places(16, hasStartDelay)
    for (let count = 0; count < 1_000; count += 1) {
      await places.take(1)
      places.release()
    }
    assert.equal(places.maxClaimed, maxClaimed)
  })
}
