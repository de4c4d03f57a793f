import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { decodeJwt } from 'jose'
import * as sessions from '../src/auth/sessions.ts'
import type { Query, Sql } from '../src/db/sql.ts'
import { sendPush } from '../src/reach/push-channel.ts'
import { createPushClient } from '../src/reach/push-client.ts'
import { createVapid } from '../src/reach/vapid.ts'
import { harness } from './support/app.ts'
import { makeNotificationsSilently } from './support/factories.ts'
import {
  claimPush,
  makePushable,
  newBrowserKeys,
  PUBLIC_KEY,
  type Pushable,
  pushDependencies,
  queuePush,
} from './support/push.ts'
import { type PushService, pushService } from './support/push-service.ts'
import { readPayload } from './support/scenario.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

const h = harness()
const client = createPushClient()
let service: PushService

before(async () => {
  service = await pushService()
})
after(async () => {
  client.close()
  await service.close()
})

type Options = Parameters<typeof queuePush>[3]

/** Queues a push, and makes one attempt to send it. */
async function send(pushable: Pushable, options: Options = {}, changes: object = {}) {
  return sendWith(sendPush({ ...pushDependencies(h, service, client), ...changes }), pushable, options)
}

async function sendWith(attemptPush: ReturnType<typeof sendPush>, pushable: Pushable, options: Options = {}) {
  const { sql } = h.database
  const id = await queuePush(sql, pushable, h.ctx.now(), options)
  const delivery = await claimPush(sql)
  assert.equal(delivery.id, id)
  service.pushes.length = 0
  const attempt = await attemptPush(delivery)
  assert.deepEqual(service.faults, [])
  const [row] = await sql<{ ready: boolean; due: Date; attempts: number; lease: string | null }>`
    select ready, due, attempts, lease from outbox where id = ${id}`
  await sql`delete from outbox where id = ${id}`
  return { attempt, pushes: [...service.pushes], row }
}

const subscriptions = (userId: number) => h.database.sql`select id from push_subscription where user_id = ${userId}`
const setQuiet = (userId: number, from: string, to: string) => h.database.sql`
  insert into notification_preference (user_id, quiet_enabled, quiet_from, quiet_to, time_zone, updated_at)
  values (${userId}, true, ${from}, ${to}, 'UTC', ${h.ctx.now()})`

describe('a push that may leave', () => {
  test('carries the notification, the badge and the link, and its headers state what is left', async () => {
    const pushable = await makePushable(h, service)
    await makeNotificationsSilently(h, pushable.userId, 2)
    const { attempt, pushes } = await send(pushable, { deadline: new Date(h.ctx.now().getTime() + 90_500) })
    assert.deepEqual(attempt, { outcome: 'delivered' })
    const [push, ...others] = pushes
    assert.equal(others.length, 0)
    assert.deepEqual(push!.message, {
      web_push: 8030,
      app_badge: 3,
      notification: {
        title: 'Titre',
        body: 'Vous êtes 4 sur 4.',
        lang: 'fr',
        dir: 'auto',
        tag: `game-${pushable.gameId}`,
        navigate: `https://app.example/games/${pushable.gameId}`,
        app_badge: 3,
        renotify: false,
        data: { id: pushable.notificationId, type: 'game_full', game_id: pushable.gameId },
      },
    })
    const { ttl, urgency, topic } = push!.headers
    assert.deepEqual([ttl, urgency], ['90', 'normal'])
    assert.match(topic!, /^[\w-]{32}$/)
    assert.deepEqual(push!.claims, {
      aud: service.base,
      exp: h.ctx.now().getTime() / 1_000 + 12 * 3_600,
      sub: 'mailto:admin@club.example',
    })
  })

  test('if it is urgent, has another tag and topic, and the urgency "high"', async () => {
    const pushable = await makePushable(h, service, { type: 'game_cancelled' })
    const [ordinary, urgent] = [await send(pushable), await send(pushable, { isUrgent: true })].map(
      ({ pushes }) => pushes[0]!,
    )
    assert.equal(urgent!.message.notification.tag, `game-${pushable.gameId}-urgent`)
    assert.deepEqual([urgent!.headers.urgency, urgent!.message.notification.renotify], ['high', true])
    assert.notEqual(urgent!.headers.topic, ordinary!.headers.topic)
  })

  test('has the same topic as another push to the same user about the same game, and no other', async () => {
    const [one, other] = [await makePushable(h, service), await makePushable(h, service)]
    const topics = [await send(one), await send(one), await send(other)].map(({ pushes }) => pushes[0]!.headers.topic)
    assert.equal(topics[0], topics[1])
    assert.notEqual(topics[0], topics[2])
  })

  test('to a session past its natural end carries the title only', async () => {
    const pushable = await makePushable(h, service, { message: 'Zoé a rejoint la partie.' })
    await h.database.sql`
      update session set expires_at = ${h.ctx.now()} where id = ${readPayload(pushable.token).sid}`
    const { attempt, pushes } = await send(pushable)
    assert.deepEqual(attempt, { outcome: 'delivered' })
    assert.equal(pushes[0]!.message.notification.title, 'Titre')
    assert.equal('body' in pushes[0]!.message.notification, false)
    assert.doesNotMatch(JSON.stringify(pushes[0]!.message), /Zoé/)
  })

  test('leaves with a link to the host, if only LINK_TEMPLATE is set and the notification lacks one of its values', async () => {
    const links = { template: 'https://app.example/scores/{score_id}', app: undefined, public: undefined }
    const { attempt, pushes } = await send(await makePushable(h, service), {}, { links })
    assert.deepEqual(
      [attempt, pushes[0]?.message.notification.navigate],
      [{ outcome: 'delivered' }, 'https://app.example'],
    )
  })

  test('with a very long message fits into the limit of push services', async () => {
    const { pushes } = await send(await makePushable(h, service, { message: 'Ä'.repeat(5_000) }))
    assert.ok(pushes[0]!.bytes <= 3_993 && pushes[0]!.bytes > 3_985)
    assert.equal(pushes[0]!.headers['content-length'], String(pushes[0]!.bytes + 103))
  })

  test('uses the same token for an hour', async () => {
    const dependencies = pushDependencies(h, service, client)
    const pushable = await makePushable(h, service)
    const first = (await send(pushable, {}, dependencies)).pushes[0]!
    const second = (await send(pushable, {}, dependencies)).pushes[0]!
    assert.equal(first.token, second.token)
    assert.equal(decodeJwt(first.token).exp, first.claims.exp)
  })
})

describe('a push is dropped', () => {
  const sql = ((...args: Parameters<Query>) => h.database.sql(...args)) as unknown as Sql
  const now = () => h.ctx.now()

  for (const [reason, change, outcome] of [
    [
      'its notification was read',
      (p: Pushable) => h.call('POST', `/api/v1/notifications/${p.notificationId}/read`, { token: p.token }),
      'read',
    ],
    [
      'its notification was deleted',
      (p: Pushable) => h.call('DELETE', `/api/v1/notifications/${p.notificationId}`, { token: p.token }),
      'read',
    ],
    [
      'its type is off',
      (p: Pushable) =>
        sql`insert into notification_preference (user_id, types, updated_at) values (${p.userId}, ${JSON.stringify({ game_full: { push: false } })}, ${now()})`,
      'off',
    ],
    ['its game was cancelled', (p: Pushable) => sql`update game set cancelled = true where id = ${p.gameId}`, 'stale'],
    [
      'its game has started',
      (p: Pushable) => sql`update game set starts_at = ${now()} where id = ${p.gameId}`,
      'stale',
    ],
    [
      'its subscription is gone',
      (p: Pushable) => sql`delete from push_subscription where id = ${p.subscriptionId}`,
      'gone',
    ],
    [
      'a logout ended the session',
      (p: Pushable) => h.call('POST', '/api/v1/auth/logout', { token: p.token }),
      'session',
    ],
    ['an operator ended the session', (p: Pushable) => sessions.endAll(sql, p.userId, now()), 'session'],
    ['the account was deleted', (p: Pushable) => sql`delete from app_user where id = ${p.userId}`, 'gone'],
  ] as [string, (pushable: Pushable) => Promise<unknown>, string][]) {
    test(`if ${reason}`, async () => {
      const pushable = await makePushable(h, service)
      await change(pushable)
      const { attempt, pushes } = await send(pushable)
      assert.deepEqual([attempt, pushes.length], [{ outcome }, 0])
    })
  }

  test('at its deadline', async () => {
    const pushable = await makePushable(h, service)
    const { attempt, pushes } = await send(pushable, { deadline: now() })
    assert.deepEqual([attempt, pushes.length], [{ outcome: 'expired' }, 0])
  })

  test('if its subscription belongs to another user now', async () => {
    const [pushable, other] = [await makePushable(h, service), await makePushable(h, service)]
    await sql`update push_subscription set user_id = ${other.userId} where id = ${pushable.subscriptionId}`
    const { attempt, pushes } = await send(pushable)
    assert.deepEqual([attempt, pushes.length], [{ outcome: 'gone' }, 0])
  })

  test('if its account is deleted between the statements of a look', async () => {
    const readSql = (async (strings: TemplateStringsArray, ...values: unknown[]) =>
      strings.join('').includes('from app_user') ? [] : h.ctx.readSql(strings, ...values)) as Query
    const { attempt, pushes } = await send(await makePushable(h, service), {}, { readSql })
    assert.deepEqual([attempt, pushes.length], [{ outcome: 'gone' }, 0])
  })

  test('together with its subscription, if the session was ended before its time', async () => {
    const pushable = await makePushable(h, service)
    await h.call('POST', '/api/v1/auth/logout', { token: pushable.token })
    await send(pushable)
    assert.deepEqual(await subscriptions(pushable.userId), [])
  })

  test('of an ended session whose device decided the time zone, and the other deliveries are looked at again', async () => {
    const { sql } = h.database
    const pushable = await makePushable(h, service)
    await sql`update push_subscription set time_zone = 'Asia/Tokyo' where id = ${pushable.subscriptionId}`
    const later = new Date(h.ctx.now().getTime() + HOUR_MS)
    const [waiting] = await sql<{ id: number }>`
      insert into outbox (channel, class, network, created_at, due, ready, user_id, payload)
      values ('push', 2, 'x', ${h.ctx.now()}, ${later}, false, ${pushable.userId}, '{}') returning id`
    await h.call('POST', '/api/v1/auth/logout', { token: pushable.token })
    assert.deepEqual((await send(pushable)).attempt, { outcome: 'session' })
    const [row] = await sql`delete from outbox where id = ${waiting!.id} returning ready`
    assert.deepEqual(row, { ready: true })
  })
})

describe('in quiet hours', () => {
  test('a push is deferred to their end without a request, and earlier attempts no longer count', async () => {
    const pushable = await makePushable(h, service)
    await setQuiet(pushable.userId, '09:00', '12:30')
    const connections = service.connections
    const { attempt, pushes, row } = await send(pushable, { failedAttempts: 2 })
    assert.deepEqual([attempt, pushes.length], [{ outcome: 'deferred', isReleased: true }, 0])
    assert.deepEqual(row, { ready: false, due: new Date('2026-11-28T12:30:00Z'), attempts: 0, lease: null })
    assert.equal(service.connections, connections)
  })

  test('a push about a game that starts within the hour leaves at once', async () => {
    const startsAt = new Date(h.ctx.now().getTime() + 50 * MINUTE_MS)
    const pushable = await makePushable(h, service, { startsAt })
    await setQuiet(pushable.userId, '09:00', '12:30')
    assert.deepEqual((await send(pushable)).attempt, { outcome: 'delivered' })
  })
})

describe('the answer of the push service', () => {
  test('404 and 410 remove the subscription', async () => {
    for (const status of [404, 410]) {
      const pushable = await makePushable(h, service)
      service.answer = () => status
      assert.deepEqual((await send(pushable)).attempt, { outcome: 'gone' })
      assert.deepEqual(await subscriptions(pushable.userId), [])
    }
  })

  test('410 keeps the subscription if the browser has subscribed again meanwhile', async () => {
    const pushable = await makePushable(h, service)
    service.answer = async () => {
      const { p256dh } = newBrowserKeys()
      await h.database.sql`update push_subscription set p256dh = ${p256dh} where id = ${pushable.subscriptionId}`
      return 410
    }
    assert.deepEqual((await send(pushable)).attempt, { outcome: 'gone' })
    assert.equal((await subscriptions(pushable.userId)).length, 1)
  })

  for (const [name, answer, seconds] of [
    ['429 with Retry-After', { status: 429, headers: { 'Retry-After': '120' } }, 120],
    ['503 with a date', { status: 503, headers: { 'Retry-After': 'Sat, 28 Nov 2026 12:00:00 GMT' } }, 7_200],
    ['500', 500, 3],
    ['a closed connection', 'reset', 3],
    ['no answer within the time limit', 'hang', 3],
  ] as const) {
    test(`${name} keeps the push for a later attempt`, async t => {
      h.clock.set('2026-11-28T10:00:00.000Z')
      const hasty = createPushClient({ timeoutMs: 500 })
      t.after(() => hasty.close())
      const pushable = await makePushable(h, service)
      service.answer = () => answer
      const deadline = new Date(h.ctx.now().getTime() + 24 * HOUR_MS)
      const { attempt } = await send(pushable, { deadline }, { client: hasty })
      const retryAt = new Date(h.ctx.now().getTime() + seconds * 1_000)
      assert.deepEqual(attempt, { outcome: 'failed', retryAt })
      assert.equal((await subscriptions(pushable.userId)).length, 1)
    })
  }

  for (const status of [400, 401, 403]) {
    test(`${status} ends the push, keeps the subscription, and logs an error without the endpoint`, async () => {
      const pushable = await makePushable(h, service)
      service.answer = () => status
      h.logged.length = 0
      assert.deepEqual((await send(pushable)).attempt, { outcome: 'rejected' })
      assert.equal((await subscriptions(pushable.userId)).length, 1)
      const errors = h.logged.filter(({ level }) => level === 50)
      assert.deepEqual(
        errors.map(({ status: logged, host }) => [logged, host]),
        [[status, `localhost:${service.port}`]],
      )
      assert.doesNotMatch(JSON.stringify(h.logged), new RegExp(pushable.endpoint.split('/').at(-1)!))
    })
  }

  test('rejections count as "blocked" after five users of a day without a delivery in between, but never for one user', async () => {
    const attemptPush = sendPush(pushDependencies(h, service, client))
    const answer = async (pushable: Pushable, status: number) => {
      service.answer = () => status
      return (await sendWith(attemptPush, pushable)).attempt.outcome
    }
    const startsAt = new Date(h.ctx.now().getTime() + 48 * HOUR_MS)
    const users: Pushable[] = []
    for (let count = 0; count < 4; count += 1) users.push(await makePushable(h, service, { startsAt }))
    const [first, second] = [users[0]!, users[1]!]
    for (let count = 0; count < 10; count += 1) assert.equal(await answer(first, 401), 'rejected')
    for (const user of users.slice(1)) assert.equal(await answer(user, 403), 'rejected')
    assert.equal(await answer(second, 201), 'delivered')
    for (const user of users) assert.equal(await answer(user, 401), 'rejected')
    h.clock.advance(24 * HOUR_MS + 1)
    for (let count = 1; count <= 5; count += 1) {
      const next = await makePushable(h, service, { startsAt })
      assert.equal(await answer(next, 401), count < 5 ? 'rejected' : 'blocked')
    }
    assert.equal(await answer(first, 401), 'blocked')
    assert.equal(await answer(second, 201), 'delivered')
    assert.equal(await answer(first, 401), 'rejected')
  })

  test('a fault of many pushes is logged once', async () => {
    const dependencies = pushDependencies(h, service, client)
    service.answer = () => 403
    h.logged.length = 0
    for (let count = 0; count < 5; count += 1) await send(await makePushable(h, service), {}, dependencies)
    assert.equal(h.logged.filter(({ level }) => level === 50).length, 1)
  })

  for (const status of [413, 302, 405]) {
    test(`${status} drops the push and keeps the subscription`, async () => {
      const pushable = await makePushable(h, service)
      service.answer = () => ({ status, headers: { Location: `${service.base}/push/elsewhere` } })
      assert.deepEqual((await send(pushable)).attempt, { outcome: 'refused' })
      assert.equal((await subscriptions(pushable.userId)).length, 1)
    })
  }

  after(() => {
    service.answer = () => 201
  })
})

describe('a worker', () => {
  before(() => {
    service.answer = () => 201
  })

  test('without the key of a subscription leaves the push to another worker', async () => {
    const pushable = await makePushable(h, service)
    const other = createVapid([newPrivateKey()], 'mailto:admin@club.example')
    const { attempt, pushes } = await send(pushable, {}, { vapid: other })
    const retryAt = new Date(h.ctx.now().getTime() + 3_000)
    assert.deepEqual([attempt, pushes.length], [{ outcome: 'keyless', retryAt }, 0])
  })

  test('with several keys signs with the key of the subscription', async () => {
    const key = newPrivateKey()
    const vapid = createVapid([key, 'q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94'], 'mailto:admin@club.example')
    for (const publicKey of vapid.publicKeys) {
      const { pushes } = await send(await makePushable(h, service, { publicKey }), {}, { vapid })
      assert.match(pushes[0]!.headers.authorization!, new RegExp(`k=${publicKey}$`))
    }
    assert.equal(vapid.publicKeys[1], PUBLIC_KEY)
  })

  test('drops a push to a host that PUSH_HOSTS no longer lists', async () => {
    const pushable = await makePushable(h, service, { endpoint: `${service.base.replace('localhost', '127.0.0.1')}/x` })
    const { attempt, pushes } = await send(pushable)
    assert.deepEqual([attempt, pushes.length], [{ outcome: 'unlisted' }, 0])
  })

  test('looks again if the connection is new: a push that was read during the handshake does not leave', async t => {
    const fresh = createPushClient()
    t.after(() => fresh.close())
    const pushable = await makePushable(h, service)
    const post: typeof fresh.post = async (endpoint, prepare) =>
      fresh.post(endpoint, async connection => {
        assert.equal(connection.isNew, true)
        await h.call('POST', `/api/v1/notifications/${pushable.notificationId}/read`, { token: pushable.token })
        return prepare(connection)
      })
    const { attempt, pushes } = await send(pushable, {}, { client: { ...fresh, post } })
    assert.deepEqual([attempt, pushes.length], [{ outcome: 'read' }, 0])
  })

  test('looks again if more than 1 s passes before it writes the request', async () => {
    await send(await makePushable(h, service))
    const pushable = await makePushable(h, service)
    const post: typeof client.post = async (endpoint, prepare) =>
      client.post(endpoint, async connection => {
        assert.equal(connection.isNew, false)
        await h.call('POST', '/api/v1/auth/logout', { token: pushable.token })
        await new Promise(resolve => setTimeout(resolve, 1_050))
        return prepare(connection)
      })
    const { attempt, pushes } = await send(pushable, {}, { client: { ...client, post } })
    assert.deepEqual([attempt, pushes.length], [{ outcome: 'session' }, 0])
  })

  function newPrivateKey(): string {
    return Buffer.alloc(32, 7).toString('base64url')
  }
})
