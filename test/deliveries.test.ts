import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { beforeEach, suite, test } from 'node:test'
import { eraseUser } from '../src/personal-data.ts'
import { update } from '../src/reach/preferences.ts'
import { harness } from './support/app.ts'
import { waitsForLock } from './support/database.ts'
import { DAY_MS, deliveries, HOUR_MS, MINUTE_MS, makeSubscription, PRODUCTION } from './support/digests.ts'
import { makeUser } from './support/factories.ts'
import { cloudEvent, newGameId, report, send, sendBatch } from './support/games.ts'
import { schedule } from './support/schedule.ts'
import { waitUntil } from './support/wait-until.ts'

const h = harness(PRODUCTION)
const { fireAllDue, startIn } = schedule(h)
const steps = deliveries(h)

type Announcement = { user: number; notification: number; urgent: boolean }

beforeEach(async () => {
  await h.database.sql`delete from outbox`
  await h.database.sql`delete from waiting_mail`
})

async function readAnnouncements(): Promise<Announcement[][]> {
  const rows = await h.database.sql<{ payload: Announcement[] }>`
    select payload from outbox where channel = 'announcement' order by id`
  return rows.map(({ payload }) => payload)
}

async function choose(userId: number, patch: Parameters<typeof update>[2]) {
  await update(h.database.sql, userId, patch, { defaults: h.ctx.config.preferenceDefaults, now: h.clock.now() })
}

/** Creates a game of two players that starts in `ms`, and reports an event of the first player to the second. */
async function makeEvent(type: string, ms = 2 * DAY_MS) {
  const [actor, reader] = [await makeUser(h), await makeUser(h)]
  const game_id = newGameId()
  const data = { game_id, creator_id: actor.id, player_ids: [actor.id, reader.id], starts_at: startIn(ms) }
  await report(h, cloudEvent('game_created', data))
  await report(h, cloudEvent(type, { ...data, actor_id: actor.id }))
  return { gameId: game_id, actor, reader, data }
}

suite('a transaction that stores notifications', () => {
  test('adds one row to the outbox, which names each stored notification', async () => {
    const [anna, bob, zoe] = [await makeUser(h), await makeUser(h), await makeUser(h)]
    const events = [newGameId(), newGameId()].map(game_id =>
      cloudEvent('game_joined', {
        game_id,
        creator_id: anna.id,
        player_ids: [anna.id, bob.id, zoe.id],
        actor_id: zoe.id,
      }),
    )
    await sendBatch(h, events)
    const announcements = await readAnnouncements()
    assert.equal(announcements.length, 1)
    const stored = await h.database.sql`
      select user_id as user, id as notification, false as urgent from notification
      where user_id = any(${[anna.id, bob.id]}::bigint[]) order by id`
    assert.equal(stored.length, 4)
    assert.deepEqual(
      announcements[0]!.toSorted((one, other) => one.notification - other.notification),
      stored,
    )
  })

  test('adds no row if it stores no notification', async () => {
    const { id } = await makeUser(h)
    const event = cloudEvent('game_joined', { game_id: newGameId(), creator_id: id, player_ids: [id], actor_id: id })
    await report(h, event)
    assert.deepEqual(await readAnnouncements(), [])
    await makeEvent('game_joined')
    await h.database.sql`delete from outbox`
    assert.equal((await send(h, event)).body.status, 'duplicate')
    assert.deepEqual(await readAnnouncements(), [])
  })

  test('marks a cancellation within 24 hours of the start as urgent, and a later game not', async () => {
    for (const [ms, urgent] of [
      [DAY_MS - MINUTE_MS, true],
      [DAY_MS + MINUTE_MS, false],
    ] as const) {
      await h.database.sql`delete from outbox`
      const { reader } = await makeEvent('game_cancelled', ms)
      const [[item]] = (await readAnnouncements()) as [[Announcement]]
      assert.equal(item.user, reader.id)
      assert.equal(item.urgent, urgent)
    }
  })

  test('marks a reminder that the service makes less than 3 hours before the start as urgent', async () => {
    const { reader } = await makeEvent('game_updated', 150 * MINUTE_MS)
    h.clock.advance(31 * MINUTE_MS)
    await fireAllDue()
    const items = (await readAnnouncements()).flat()
    assert.deepEqual(
      items.filter(({ user }) => user === reader.id).map(({ urgent }) => urgent),
      [true],
    )
  })
})

suite('the deliveries of a notification', () => {
  test('are a push for each device of the reader, and a row for a mail', async () => {
    const { gameId, reader } = await makeEvent('game_cancelled', 2 * HOUR_MS)
    const devices = [await makeSubscription(h, reader.id), await makeSubscription(h, reader.id)]
    await makeSubscription(h, (await makeUser(h)).id)
    const now = h.clock.now()
    assert.deepEqual(await steps.expand(), ['delivered'])
    assert.deepEqual(await readAnnouncements(), [])
    const pushes = await steps.readPushes(reader.id)
    const [waiting] = await steps.readWaiting(reader.id)
    assert.deepEqual(
      pushes.map(push => push.subscription_id),
      devices,
    )
    for (const push of pushes) {
      assert.equal(push.class, 1)
      assert.equal(push.game_id, gameId)
      assert.equal(push.notification_id, waiting!.notification_id)
      assert.equal(push.deadline.getTime(), Math.floor((now.getTime() + 2 * HOUR_MS) / 1000) * 1000)
    }
    assert.equal(waiting!.urgent, true)
    assert.deepEqual(waiting!.look_at, new Date(now.getTime() + 2 * MINUTE_MS))
  })

  test('exist only for the channels that the reader has on', async () => {
    const { reader } = await makeEvent('game_joined')
    await makeSubscription(h, reader.id)
    await steps.expand()
    assert.equal((await steps.readPushes(reader.id)).length, 1)
    assert.deepEqual(await steps.readWaiting(reader.id), [], 'mails about this type are off by default')
    const other = await makeEvent('game_joined')
    await makeSubscription(h, other.reader.id)
    await choose(other.reader.id, { types: { game_joined: { push: false, email: true } } })
    await steps.expand()
    assert.deepEqual(await steps.readPushes(other.reader.id), [])
    const [waiting] = await steps.readWaiting(other.reader.id)
    assert.deepEqual(waiting!.look_at, new Date(h.clock.now().getTime() + 15 * MINUTE_MS))
  })

  test('leave out mails if the reader has paused them', async () => {
    const { reader } = await makeEvent('game_cancelled')
    await choose(reader.id, { emailPaused: true })
    await steps.expand()
    assert.deepEqual(await steps.readWaiting(reader.id), [])
  })

  test('leave out a reader whose account was deleted, and notifications that were read', async () => {
    const [actor, gone, fast, slow] = [await makeUser(h), await makeUser(h), await makeUser(h), await makeUser(h)]
    const players = [actor, gone, fast, slow].map(({ id }) => id)
    const data = { game_id: newGameId(), creator_id: actor.id, player_ids: players, actor_id: actor.id }
    await report(h, cloudEvent('game_cancelled', data))
    for (const { id } of [gone, fast, slow]) await makeSubscription(h, id)
    assert.equal(await eraseUser(h.database.sql, gone.id), true)
    await h.call('POST', '/api/v1/notifications/read-all', { token: fast.token })
    await steps.expand()
    assert.deepEqual(
      await Promise.all([gone, fast, slow].map(async ({ id }) => (await steps.readPushes(id)).length)),
      [0, 0, 1],
    )
    assert.deepEqual(
      await Promise.all([gone, fast, slow].map(async ({ id }) => (await steps.readWaiting(id)).length)),
      [0, 0, 1],
    )
  })

  test('are neither lost nor doubled if the process is killed while it makes them', async () => {
    const { reader } = await makeEvent('game_cancelled')
    const device = await makeSubscription(h, reader.id)
    const program = new URL('./support/expander.ts', import.meta.url).pathname
    const child = spawn(process.execPath, [program, h.database.url], { stdio: 'inherit' })
    await h.database.sql.begin(async tx => {
      // The process waits for this lock after it has inserted the pushes.
      await tx`lock table waiting_mail in share row exclusive mode`
      await waitUntil(() => waitsForLock(h.database.sql, 'insert into waiting_mail'), 60_000)
      child.kill('SIGKILL')
      await once(child, 'exit')
    })
    await waitUntil(async () => {
      const [row] = await h.database.sql`select pid from pg_stat_activity where application_name = 'expander'`
      return row === undefined
    })
    assert.deepEqual(await steps.readPushes(reader.id), [])
    await h.database.sql`update outbox set lease = null, leased_until = null`
    assert.deepEqual(await steps.expand(), ['delivered'])
    assert.deepEqual(
      (await steps.readPushes(reader.id)).map(push => push.subscription_id),
      [device],
    )
    assert.equal((await steps.readWaiting(reader.id)).length, 1)
    assert.deepEqual(await steps.expand(), [])
  })

  test('are made once by several workers that take the same row', async () => {
    const { reader } = await makeEvent('game_cancelled')
    await makeSubscription(h, reader.id)
    const outcomes = await Promise.all(Array.from({ length: 4 }, () => steps.expand()))
    assert.deepEqual(outcomes.flat(), ['delivered'])
    assert.equal((await steps.readPushes(reader.id)).length, 1)
  })
})
