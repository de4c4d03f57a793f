import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { eraseUser, exportUser } from '../src/personal-data.ts'
import { IS_BOUNCING } from '../src/reach/mail-state.ts'
import { prune } from '../src/retention.ts'
import { harness } from './support/app.ts'
import { DAY_MS, makeSubscription } from './support/digests.ts'
import { makeNotificationsSilently, makeUser } from './support/factories.ts'
import { METRICS_TOKEN, scrape } from './support/metrics.ts'

const h = harness({ METRICS_TOKEN })
const RETENTION = { retentionReadDays: 90, retentionDays: 365 }

/** Creates a user with a row in each table of deliveries. */
async function makeReader() {
  const user = await makeUser(h)
  const now = h.clock.now()
  const [notification] = await makeNotificationsSilently(h, user.id, 1)
  const subscription = await makeSubscription(h, user.id)
  const { sql } = h.database
  await sql`
    insert into notification_preference (user_id, types, time_zone, updated_at)
    values (${user.id}, '{"game_joined": {"push": false}}', 'Asia/Tokyo', ${now})`
  await sql`
    insert into waiting_mail (user_id, notification_id, game_id, urgent, created_at, look_at)
    values (${user.id}, ${notification}, 1, true, ${now}, ${now})`
  await sql`insert into mail_state (user_id, ordinary_at) values (${user.id}, ${now})`
  await sql`insert into digest_attempt (user_id, attempted_at, bounced) values (${user.id}, ${now}, false)`
  await sql`
    insert into outbox (channel, class, created_at, due, ready, user_id, notification_id, subscription_id, payload)
    values ('push', 2, ${now}, ${now}, false, ${user.id}, ${notification}, ${subscription}, '{}'),
      ('mail', 5, ${now}, ${now}, true, ${user.id}, null, null, '{"notification_ids": [7]}')`
  return { ...user, notification, subscription }
}

async function countRows(userId: number): Promise<Record<string, number>> {
  const [row] = await h.database.sql<Record<string, number>>`
    select (select count(*) from notification_preference where user_id = ${userId}) as notification_preference,
      (select count(*) from push_subscription where user_id = ${userId}) as push_subscription,
      (select count(*) from waiting_mail where user_id = ${userId}) as waiting_mail,
      (select count(*) from mail_state where user_id = ${userId}) as mail_state,
      (select count(*) from digest_attempt where user_id = ${userId}) as digest_attempt,
      (select count(*) from outbox where user_id = ${userId}) as outbox`
  return row!
}

suite('the data of deliveries', () => {
  test('users export prints it, without the secret part of an endpoint and without keys', async () => {
    const reader = await makeReader()
    const exported = await exportUser(h.database.sql, reader.id)
    const reach = exported.reach as Record<string, any>
    assert.deepEqual(reach.preferences.types, { game_joined: { push: false } })
    assert.equal(reach.push_subscriptions[0].id, reader.subscription)
    assert.equal(reach.push_subscriptions[0].push_service, 'fcm.googleapis.com')
    assert.equal(reach.waiting_mails[0].notification_id, reader.notification)
    assert.deepEqual(
      reach.deliveries.map((row: { channel: string }) => row.channel),
      ['push', 'mail'],
    )
    assert.equal(reach.last_mails.length, 1)
    assert.equal(reach.mail_attempts.length, 1)
    assert.doesNotMatch(JSON.stringify(exported), /fcm\.googleapis\.com\/|p256dh|"auth"/)
  })

  test('the deletion of an account deletes it, and nothing of other accounts', async () => {
    const [reader, other] = [await makeReader(), await makeReader()]
    const before = await countRows(other.id)
    assert.equal(await eraseUser(h.database.sql, reader.id), true)
    assert.deepEqual(new Set(Object.values(await countRows(reader.id))), new Set([0]))
    assert.deepEqual(await countRows(other.id), before)
    assert.deepEqual(Object.values(before), [1, 1, 1, 1, 1, 2])
  })

  test('prune deletes attempts after a day, waiting mails that no worker handles, and old or ended subscriptions', async () => {
    await h.database.sql`delete from app_user`
    const [kept, unconfirmed, ended] = [await makeReader(), await makeReader(), await makeReader()]
    h.clock.advance(DAY_MS - 1)
    await prune(h.database.sql, RETENTION, h.clock.now())
    assert.equal((await countRows(kept.id)).digest_attempt, 1)
    h.clock.advance(1)
    const first = await prune(h.database.sql, RETENTION, h.clock.now())
    assert.deepEqual([first.digest_attempt, first.waiting_mail, first.push_subscription], [3, 0, 0])
    h.clock.advance(3 * DAY_MS)
    assert.equal((await prune(h.database.sql, RETENTION, h.clock.now())).waiting_mail, 3)
    const now = h.clock.now()
    await h.database.sql`
      update session set ended_at = ${now}, end_reason = 'logout' where user_id = ${ended.id}`
    const longAgo = new Date(now.getTime() - 90 * DAY_MS)
    await h.database.sql`
      update push_subscription set confirmed_at = ${longAgo} where user_id = ${unconfirmed.id}`
    await h.database.sql`
      update push_subscription set confirmed_at = ${new Date(longAgo.getTime() + 1)} where user_id = ${kept.id}`
    assert.equal((await prune(h.database.sql, RETENTION, now)).push_subscription, 2)
    assert.equal((await countRows(kept.id)).push_subscription, 1)
  })

  test('a bounce before a sign-in does not count again after prune has deleted the session', async () => {
    const [back, gone] = [await makeUser(h), await makeUser(h)]
    const bouncedAt = (seconds: number) => new Date(h.clock.now().getTime() + seconds * 1000)
    await h.database.sql`
      insert into mail_state (user_id, bounced_at)
      values (${back.id}, ${bouncedAt(-1)}), (${gone.id}, ${bouncedAt(1)})`
    h.clock.advance(100 * DAY_MS)
    await prune(h.database.sql, RETENTION, h.clock.now())
    const states = await h.database.sql`
      select user_id, ${IS_BOUNCING} as is_bouncing,
        (select count(*) from session where session.user_id = mail_state.user_id) as sessions
      from mail_state where user_id in (${back.id}, ${gone.id}) order by user_id`
    assert.deepEqual(states, [
      { user_id: back.id, is_bouncing: false, sessions: 0 },
      { user_id: gone.id, is_bouncing: true, sessions: 0 },
    ])
  })
})

test('/metrics exposes waiting deliveries by channel, without those that wait for the end of quiet hours', async () => {
  const { sql } = h.database
  await sql`delete from outbox`
  const names = (channel: string) =>
    ['waiting', 'oldest_seconds'].map(name => `courtside_deliveries_${name}{channel="${channel}"}`)
  const read = async (channel: string) => {
    const samples = await scrape(h)
    return names(channel).map(name => samples.get(name))
  }
  for (const channel of ['announcement', 'push', 'digest']) assert.deepEqual(await read(channel), [0, 0])
  await sql`
    insert into outbox (channel, class, created_at, due, ready, attempts, payload)
    select channel, class, now() - interval '10 hours', now() + due * interval '1 second', ready, attempts, '{}'
    from unnest(array['push', 'push', 'push', 'mail', 'mail'], array[1, 2, 2, 5, 2], array[-30, 3600, 20, 60, 0],
      array[true, false, false, false, true], array[0, 0, 2, 1, 0]) as row (channel, class, due, ready, attempts)`
  // A ready push, a push that waits for the end of quiet hours, and a push that has failed twice.
  const [waiting, oldest] = await read('push')
  assert.equal(waiting, 2)
  assert.ok(oldest! >= 30 && oldest! < 90, String(oldest))
  assert.equal((await read('digest'))[0], 1)
  assert.equal((await scrape(h)).get('courtside_mails_waiting'), 1)
})

test('failed deliveries of fewer than five people do not count as old', async () => {
  const { sql } = h.database
  const readAge = async (channel: string) => {
    const samples = await scrape(h)
    return samples.get(`courtside_deliveries_oldest_seconds{channel="${channel}"}`)!
  }
  const fail = (channel: string, networks: number[]) => sql`
    insert into outbox (channel, class, network, created_at, due, ready, attempts, payload)
    select ${channel}, 5, int4send(network), now() - network * interval '1 hour', now(), false, 3, '{}'
    from unnest(${networks}::integer[]) as network`
  for (const [channel, label] of [
    ['push', 'push'],
    ['mail', 'digest'],
  ] as const) {
    await sql`delete from outbox`
    await fail(channel, [90, 90, 90, 90, 90, 90, 80, 70, 60])
    assert.equal(await readAge(label), 0, label)
    await fail(channel, [50])
    const age = await readAge(label)
    assert.ok(age >= 50 * 3600 && age < 50 * 3600 + 60, `${label} ${age}`)
  }
  // An announcement has no receiver.
  await sql`update outbox set channel = 'announcement' where network = int4send(90)`
  assert.ok((await readAge('announcement')) >= 90 * 3600)
})
