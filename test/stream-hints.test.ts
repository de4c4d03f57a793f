import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { HINT_CHANNEL } from '../src/db/channels.ts'
import { inboxHint } from '../src/db/hints.ts'
import { onChannel } from '../src/db/own-schema.ts'
import { anotherApp, harness, INTAKE_KEY, settingsFor } from './support/app.ts'
import { type ClientStream, listen } from './support/event-stream.ts'
import { makeNotifications, makeNotificationsSilently, makeUser } from './support/factories.ts'
import { cloudEvent, newGameId } from './support/games.ts'
import { listenForHints } from './support/hints.ts'
import { createMuteRole } from './support/mute-role.ts'
import { startService } from './support/service.ts'
import { PATH, twoProcesses } from './support/streams.ts'

const ROUNDS = 30

const h = harness()

/** Reads events up to the notification `last`. @returns the ids of the notifications, in the order of the stream */
async function readIds(stream: ClientStream, last: number): Promise<number[]> {
  const ids: number[] = []
  while (ids.at(-1) !== last) {
    const { event, data } = await stream.next()
    if (event === 'notification') ids.push(data.id)
  }
  return ids
}

describe('the hints that make streams send changes', { timeout: 120_000 }, () => {
  const { at, second, open, openSynced } = twoProcesses(h)
  const hints = listenForHints(h)
  const hint = (userId: number) => h.ctx.hints.sendAfter(async changed => changed.add(inboxHint(userId)))

  test('a notification whose hint was lost is sent with the next hint about the user', async () => {
    const user = await makeUser(h)
    const stream = await openSynced(at.there, user.token)
    const lost = await makeNotificationsSilently(h, user.id, 2)
    const [next] = await makeNotifications(h, user.id, 1)
    assert.deepEqual(await readIds(stream, next!), [...lost, next])
    assert.deepEqual(await stream.next(), { event: 'unread_count', data: { unread_count: 3 } })
  })

  test('if a process is killed between a commit and its NOTIFY, the streams get the notification with the next hint', async () => {
    const [creator, player] = [await makeUser(h), await makeUser(h)]
    const stream = await openSynced(at.there, creator.token)
    const mute = await createMuteRole(h.database)
    const dying = await startService(settingsFor(mute.url))
    const players = { creator_id: creator.id, player_ids: [creator.id, player.id], actor_id: player.id }
    const answer = await fetch(`${dying.address}/internal/v1/events`, {
      method: 'POST',
      headers: { authorization: `Bearer ${INTAKE_KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify(cloudEvent('game_joined', { game_id: newGameId(), ...players })),
    })
    assert.equal(answer.status, 202)
    await dying.stop('SIGKILL')
    await mute.drop()
    const [listed] = (await h.call('GET', PATH, { token: creator.token })).body.data
    assert.equal(listed.type, 'game_joined')
    await hint(creator.id)
    assert.deepEqual(await stream.next(), { event: 'notification', data: listed })
  })

  test('a user who received no event for a minute gets changes whose hints were lost', async () => {
    const quick = await anotherApp(h, {}, { limits: { quietStreamMs: 100 } })
    const address = await listen(quick.app)
    const user = await makeUser(h)
    const stream = await openSynced(address, user.token)
    const [id] = await makeNotificationsSilently(h, user.id, 1)
    // If the listener of this process connects only now, the stream gets a second `sync`.
    let event = await stream.next()
    if (event.event === 'sync') event = await stream.next()
    assert.equal(event.data.id, id)
    assert.deepEqual((await stream.next()).data, { unread_count: 1 })
    await h.database.sql`update notification set read_at = created_at where id = ${id}`
    assert.deepEqual((await stream.next()).data, { unread_count: 0 })
    stream.close()
    await quick.close()
  })

  test('notifications that a sync included are not sent again, and a hint without a change sends nothing', async () => {
    const user = await makeUser(h)
    await makeNotifications(h, user.id, 3)
    h.clock.advance(10 * 60_000)
    await makeNotifications(h, user.id, 3)
    const stream = await openSynced(at.there, user.token)
    for (let round = 0; round < ROUNDS; round += 1) await hint(user.id)
    await hints.settle()
    const [next] = await makeNotifications(h, user.id, 1)
    assert.equal((await stream.next()).data.id, next)
  })

  test('while transactions commit in any order, each stream sends each notification once', async () => {
    const user = await makeUser(h)
    const streams = [await openSynced(at.here, user.token), await openSynced(at.there, user.token)]
    const ids: number[] = []
    for (let round = 0; round < ROUNDS; round += 1) {
      const made = await Promise.all(
        Array.from({ length: 5 }, (_, index) =>
          h.ctx.hints.sendAfter(changed =>
            h.database.sql.begin(async sql => {
              changed.add(inboxHint(user.id))
              const inTransaction = { ...h, database: { ...h.database, sql: Object.assign(sql) } }
              const [id] = await makeNotificationsSilently(inTransaction, user.id, 1)
              await sql`select pg_sleep(${((index * 7 + round) % 5) / 500}::float)`
              return id!
            }),
          ),
        ),
      )
      ids.push(...made)
    }
    const [last] = await makeNotifications(h, user.id, 1)
    for (const stream of streams) {
      const received = await readIds(stream, last!)
      assert.deepEqual(
        received.toSorted((a, b) => a - b),
        [...ids, last!].toSorted((a, b) => a - b),
      )
    }
  })

  test('a second stream of a user gets a sync, and the first stream sends the unread count that the sync reported', async () => {
    const user = await makeUser(h)
    const first = await openSynced(at.there, user.token)
    const ids = await makeNotificationsSilently(h, user.id, 2)
    const added = await open(at.there, user.token)
    assert.deepEqual(await added.next(), { event: 'sync', data: { unread_count: 2, latest_id: ids[1] } })
    assert.deepEqual(await first.next(), { event: 'unread_count', data: { unread_count: 2 } })
  })

  test('when the listener is connected again, streams get the notifications that they missed', async () => {
    const user = await makeUser(h)
    const stream = await openSynced(at.there, user.token)
    const down = new Promise<void>(resolve => second.ctx.listener.onDown(resolve))
    await h.database.sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and application_name = 'courtside-listener'`
    await down
    const [id] = await makeNotificationsSilently(h, user.id, 1)
    assert.deepEqual(await readIds(stream, id!), [id])
  })

  describe('hints during an upgrade', () => {
    test('streams of this version send what a process of the previous version stores and reads', async () => {
      const user = await makeUser(h)
      const stream = await openSynced(at.there, user.token)
      const [id] = await makeNotificationsSilently(h, user.id, 1)
      // The previous version named the user and the new row in the transaction that stored the row.
      await h.database.sql`select pg_notify(${onChannel(HINT_CHANNEL)}, ${`${user.id}:${id}`})`
      assert.equal((await stream.next()).data.id, id)
      assert.deepEqual((await stream.next()).data, { unread_count: 1 })
      await h.database.sql`update notification set read_at = created_at where id = ${id}`
      await h.database.sql`select pg_notify(${onChannel(HINT_CHANNEL)}, ${`${user.id}`})`
      assert.deepEqual((await stream.next()).data, { unread_count: 0 })
    })

    test('a process of the previous version finds the ids of new notifications in the hints of this version', async () => {
      const user = await makeUser(h)
      hints.payloads.length = 0
      await h.ctx.hints.sendAfter(async changed => changed.add('o'))
      const ids = await makeNotifications(h, user.id, 2)
      const found: (number | undefined)[][] = []
      while (found.length < 2) {
        // This is how the previous version reads a payload. It ignores `o`, because no user has the id NaN.
        const items = (await hints.take()).flatMap(payload => payload.split(','))
        const pairs = items.map(item => item.split(':').map(Number))
        found.push(...pairs.filter(([userId]) => userId === user.id))
      }
      assert.deepEqual(
        found,
        ids.map(id => [user.id, id]),
      )
    })
  })
})
