import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { Channel } from '../src/outbox/channel.ts'
import type { Delivery } from '../src/outbox/outbox.ts'
import { startWorkers } from '../src/outbox/workers.ts'
import { NOW, type Outbox, outbox } from './support/outbox.ts'
import { waitUntil } from './support/wait-until.ts'

const COUNT = 5

/** Adds deliveries of a channel to the outbox. */
async function add({ sql }: Outbox, channel: string, count: number, deadline?: Date) {
  await sql`
    insert into outbox (channel, class, created_at, due, deadline, payload)
    select ${channel}, 1, ${NOW}, ${NOW}, ${deadline ?? null}, to_jsonb(n) from generate_series(1, ${count}) as n`
}

function startAll(box: Outbox, channels: Partial<Channel>[]) {
  const outcomes: string[] = []
  const workers = startWorkers(
    box.url,
    channels.map(channel => ({
      name: 'push',
      classes: [1],
      places: 2,
      findRetryClass: failed => failed,
      deliver: async () => ({ outcome: 'delivered' }),
      ...channel,
    })),
    {
      log: { error() {}, warn() {} } as never,
      now: () => NOW,
      observe: ({ channel, class: rowClass, outcome }) => outcomes.push(`${channel} ${rowClass} ${outcome}`),
    },
  )
  return { workers, outcomes }
}

suite('the channels of the outbox', () => {
  test('deliver their own rows on a few shared connections, and a silent channel does not delay another one', async t => {
    const box = await outbox(t)
    for (const channel of ['push', 'mail', 'announcement']) await add(box, channel, COUNT)
    let release = () => {}
    const silent = new Promise<void>(resolve => {
      release = resolve
    })
    const deliver = async () => {
      await silent
      return { outcome: 'delivered' }
    }
    const { workers, outcomes } = startAll(box, [{ name: 'mail', deliver }, { name: 'push' }, { name: 'announcement' }])
    t.after(() => workers.stop())
    await waitUntil(() => outcomes.length === 2 * COUNT)
    assert.deepEqual([...new Set(outcomes)].sort(), ['announcement 1 delivered', 'push 1 delivered'])
    const [row] = await box.sql<{ count: number }>`
      select count(*) from pg_stat_activity
      where datname = current_database() and application_name = 'courtside-worker'`
    assert.ok(row!.count <= 4, String(row!.count))
    release()
    await waitUntil(() => outcomes.length === 3 * COUNT)
    await workers.stop()
    assert.deepEqual(await box.rows(), [])
  })

  test('drop a row whose deadline has passed, without an attempt to deliver it', async t => {
    const box = await outbox(t)
    await add(box, 'push', COUNT, NOW)
    await add(box, 'push', COUNT, new Date(NOW.getTime() + 1))
    const delivered: unknown[] = []
    const { workers, outcomes } = startAll(box, [
      {
        deliver: async ({ payload }: Delivery) => {
          delivered.push(payload)
          return { outcome: 'delivered' }
        },
      },
    ])
    await waitUntil(() => outcomes.length === 2 * COUNT)
    await workers.stop()
    assert.equal(delivered.length, COUNT)
    assert.equal(outcomes.filter(outcome => outcome === 'push 1 expired').length, COUNT)
    assert.deepEqual(await box.rows(), [])
  })

  test('leave a row alone that the delivery itself has deferred, and take the next row into its place', async t => {
    const box = await outbox(t)
    await add(box, 'push', COUNT)
    const { workers, outcomes } = startAll(box, [
      {
        places: 1,
        async deliver({ id, lease }: Delivery) {
          await box.sql`
            update outbox set ready = false, lease = null, leased_until = null, attempts = attempts - 1
            where id = ${id} and lease = ${lease}`
          return { outcome: 'deferred', isReleased: true }
        },
      },
    ])
    await waitUntil(() => outcomes.length >= COUNT)
    await workers.stop()
    const rows = await box.rows()
    assert.equal(rows.length, COUNT)
    for (const row of rows) assert.equal(row.lease, null)
  })
})
