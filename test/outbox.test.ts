import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KEY_LOOKUPS } from '../src/db/connection-config.ts'
import { connect, type Sql } from '../src/db/sql.ts'
import * as rows from '../src/outbox/outbox.ts'
import { TakeOver } from '../src/outbox/take-over.ts'
import { eraseUser } from '../src/reach/personal-data.ts'
import { wakeUser } from '../src/reach/preferences.ts'
import { NOW, type Outbox, outbox } from './support/outbox.ts'

/** Claims rows as a worker does that remembers the last network of each class. */
function claimer({ sql }: Outbox) {
  const lastNetworks = new Map<number, Buffer>([1, 2, 3].map(each => [each, Buffer.alloc(0)]))
  return async (limit: number, lapsedBefore?: Date) => {
    const claimed = await rows.claim(sql, { channel: 'mail', limit, lastNetworks, lapsedBefore })
    for (const row of claimed) lastNetworks.set(row.class, row.network)
    return claimed
  }
}

const describe = (claimed: rows.Delivery[]) => claimed.map(row => `${row.class}${row.network}`).join(' ')

test('classes are claimed in order, and within a class one row of each network, then a second row of each', async t => {
  const box = await outbox(t)
  await box.add([
    ...['b', 'b', 'b', 'a', 'c', 'c'].map(network => ({ class: 3, network })),
    { class: 2, network: 'z' },
    { class: 1, network: 'b' },
  ])
  const claim = claimer(box)
  assert.equal(describe(await claim(20)), '1b 2z 3a 3b 3c 3b 3c 3b')
})

test('a claim continues after the network that was served last, and then with the first network', async t => {
  const box = await outbox(t)
  await box.add(['a', 'a', 'a', 'b', 'b', 'b', 'c', 'c', 'c'].map(network => ({ class: 3, network })))
  const claim = claimer(box)
  const order: string[] = []
  for (const limit of [1, 1, 2, 1, 4]) order.push(describe(await claim(limit)))
  assert.deepEqual(order, ['3a', '3b', '3c 3a', '3b', '3c 3a 3b 3c'])
})

test('a thousand waiting rows of one network delay the first row of another network by one row', async t => {
  const box = await outbox(t)
  await box.sql`
    insert into outbox (channel, class, network, created_at, due, payload)
    select 'mail', 3, 'crowd', ${NOW}, ${NOW}, '{}' from generate_series(1, 1000)`
  const claim = claimer(box)
  await claim(3)
  await box.add([{ class: 3, network: 'quiet' }])
  assert.equal(describe(await claim(2)), '3quiet 3crowd')
})

test('concurrent claims never return the same row', async t => {
  const box = await outbox(t)
  for (let round = 0; round < 20; round += 1) {
    await box.add(Array.from({ length: 10 }, (_, index) => ({ network: `n${index % 3}` })))
    const claimed = (await Promise.all(Array.from({ length: 5 }, () => claimer(box)(4)))).flat()
    assert.ok(claimed.length > 0)
    assert.equal(new Set(claimed.map(row => row.id)).size, claimed.length)
    await box.sql`delete from outbox`
  }
})

test('a deferred row is claimed only after it has been marked as ready', async t => {
  const box = await outbox(t)
  const soon = new Date(NOW.getTime() + 1_000)
  await box.add([{ due: soon }])
  const claim = claimer(box)
  assert.equal((await rows.markReady(box.sql, NOW, 10)).marked, 0)
  assert.deepEqual(await claim(5), [])
  assert.equal((await rows.markReady(box.sql, soon, 10)).marked, 1)
  const [row] = await claim(5)
  const due = new Date(NOW.getTime() + 60_000)
  await rows.finish(box.sql, [{ ...row!, due }], NOW)
  assert.deepEqual(await claim(5), [])
})

test('after another worker has taken over a lapsed lease, the first worker can neither renew nor finish it', async t => {
  const box = await outbox(t)
  const ended = new Date(NOW.getTime() - 1)
  const lapse = () => box.sql`update outbox set leased_until = ${ended}`
  await box.add([{}])
  const [first] = await claimer(box)(1)
  assert.deepEqual(await claimer(box)(1, NOW), [])
  await lapse()
  assert.deepEqual(await claimer(box)(1), [])
  // A claim can be sent before the lease lapses, and reach the server later.
  assert.deepEqual(await claimer(box)(1, ended), [])
  // A renewal under the row's own token succeeds even after the lease has lapsed.
  assert.equal((await rows.renew(box.sql, [first!])).size, 1)
  assert.deepEqual(await claimer(box)(1, NOW), [])
  await lapse()
  const [second] = await claimer(box)(1, NOW)
  assert.equal(second!.id, first!.id)
  assert.equal((await rows.renew(box.sql, [first!])).size, 0)
  for (const due of [undefined, NOW]) {
    assert.equal((await rows.finish(box.sql, [{ ...first!, due }], NOW)).size, 0)
  }
  assert.equal((await box.rows())[0]!.lease, second!.lease)
  assert.equal((await rows.finish(box.sql, [{ ...second!, due: undefined }], NOW)).size, 1)
  assert.deepEqual(await box.rows(), [])
})

test('a worker takes leases over only after its statements have succeeded for 10 s without a gap of more than 4 s', () => {
  const takeOver = new TakeOver()
  const at = (seconds: number) => new Date(NOW.getTime() + seconds * 1_000)
  const run = (...seconds: number[]) => {
    for (const second of seconds) takeOver.recordSuccess(at(second))
    return takeOver.lapsedBefore
  }
  assert.equal(run(0, 1, 4, 8, 9), undefined)
  assert.deepEqual(run(10), at(10))
  assert.deepEqual(run(12), at(12))
  takeOver.recordFailure()
  assert.equal(takeOver.lapsedBefore, undefined)
  assert.equal(run(13, 17, 20, 22), undefined)
  assert.deepEqual(run(23), at(23))
  // A statement that waits for a lock ends late. A process that was frozen sends it late.
  assert.equal(run(28, 32, 36, 37), undefined)
  assert.deepEqual(run(38), at(38))
  // The clock of the database was set back.
  assert.equal(run(5, 9, 13, 14), undefined)
  assert.deepEqual(run(15), at(15))
})

test('a code has at most one row, until its mail has left', async t => {
  const box = await outbox(t)
  await box.ask('zoe@example.com')
  const repeat = () => box.sql`
    insert into outbox (channel, class, created_at, due, code_id, payload)
    select 'mail', 3, now(), now(), id, '{}' from sign_in_code
    on conflict (code_id) where code_id is not null do nothing returning id`
  assert.deepEqual(await repeat(), [])
  await box.sql`delete from outbox`
  assert.equal((await repeat()).length, 1)
})

test('a claim from a hundred thousand waiting rows uses an index and reads only a few of them', async t => {
  const box = await outbox(t)
  await box.sql`
    insert into outbox (channel, class, network, created_at, due, ready, payload)
    select 'mail', 3, int4send(n % 500), now(), now(), n % 2 = 0, '{}' from generate_series(1, 100000) as n`
  await box.sql`analyze outbox`
  const read = async () => {
    const [row] = await box.sql<{ seq: number; fetched: number }>`
      select seq_scan as seq, idx_tup_fetch as fetched, pg_stat_force_next_flush() from pg_stat_user_tables
      where relname = 'outbox'`
    return row!
  }
  const worker = connect(box.url, { connections: 1, planner: KEY_LOOKUPS })
  await worker`select 1`
  const before = await read()
  const lastNetworks = new Map<number, Buffer>([[3, Buffer.alloc(0)]])
  assert.equal(
    (await rows.claim(worker, { channel: 'mail', limit: 4, lastNetworks, lapsedBefore: undefined })).length,
    4,
  )
  await worker.close()
  const after = await read()
  assert.equal(after.seq, before.seq)
  assert.ok(after.fetched - before.fetched < 100, `${after.fetched - before.fetched}`)
})

test('workers that renew and finish rows never deadlock with transactions that change the rows of a user', async t => {
  const box = await outbox(t)
  const makeHeld = async () => {
    await box.sql`delete from outbox`
    // `wakeUser` changes only rows that are not ready, so the leased rows are not ready either.
    await box.sql`
      insert into outbox (channel, class, created_at, due, user_id, ready, lease, leased_until, payload)
      select 'mail', 5, ${NOW}, ${NOW}, 1, false, gen_random_uuid(), now(), '{}' from generate_series(1, 300)`
    // The worker finishes its rows in any order.
    return box.sql<rows.Finished>`
      select id, class, lease, attempts, case when id % 2 = 0 then due end as due from outbox order by id desc`
  }
  for (let round = 0; round < 200; round += 1) {
    const held = (await makeHeld()).map(row => ({ ...row, due: row.due ?? undefined }))
    const work = round % 2 === 0 ? rows.finish(box.sql, held, NOW) : rows.renew(box.sql, held)
    const change = round % 4 < 2 ? (tx: Sql) => eraseUser(tx, 1) : (tx: Sql) => wakeUser(tx, 1, NOW)
    const [tokens] = await Promise.all([work, box.sql.begin(change)])
    if (round % 4 === 3) assert.equal(tokens.size, 300)
  }
})
