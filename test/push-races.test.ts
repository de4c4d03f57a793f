import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { sendPush } from '../src/reach/push-channel.ts'
import { createPushClient } from '../src/reach/push-client.ts'
import { createVapid } from '../src/reach/vapid.ts'
import { harness } from './support/app.ts'
import { makeUser } from './support/factories.ts'
import { claimPush, makePushable, newSubscription, type Pushable, pushDependencies, queuePush } from './support/push.ts'
import { type PushService, pushService } from './support/push-service.ts'
import { readPayload } from './support/scenario.ts'

const URL = '/api/v1/push/subscriptions'
const ROUNDS = 200
/** Rounds with a push take longer. */
const PUSH_ROUNDS = 100

const h = harness()

/** Calls two functions concurrently. Each round calls another one first. */
async function race<One, Other>(round: number, one: () => Promise<One>, other: () => Promise<Other>) {
  if (round % 2 === 0) return Promise.all([one(), other()])
  const second = other()
  return Promise.all([one(), second])
}

const put = (token: string, body: unknown) => h.call('PUT', URL, { token, body })
const countRows = async (userId: number) =>
  (await h.database.sql`select from push_subscription where user_id = ${userId}`).length

describe('concurrent requests about subscriptions', () => {
  test('two users with one endpoint end with one row, which belongs to one of them', { timeout: 240_000 }, async () => {
    const [one, other] = [await makeUser(h), await makeUser(h)]
    for (let round = 0; round < ROUNDS; round += 1) {
      const subscription = newSubscription()
      const answers = await race(
        round,
        () => put(one.token, subscription),
        () => put(other.token, subscription),
      )
      assert.deepEqual(
        answers.map(({ status }) => status),
        [200, 200],
      )
      const rows = await h.database.sql<{ id: number; user_id: number; session_id: string }>`
        select id, user_id, session_id from push_subscription where endpoint = ${subscription.endpoint}`
      assert.equal(rows.length, 1)
      const winner = rows[0]!.user_id === one.id ? 0 : 1
      assert.equal(rows[0]!.id, answers[winner]!.body.data.id)
      assert.equal(rows[0]!.session_id, readPayload([one, other][winner]!.token).sid)
      await h.database.sql`delete from push_subscription where endpoint = ${subscription.endpoint}`
    }
  })

  test('two users who take each other’s endpoints, each with 10 rows, never wait for each other', async () => {
    const [one, other] = [await makeUser(h), await makeUser(h)]
    const mine = Array.from({ length: 10 }, () => newSubscription())
    const theirs = Array.from({ length: 10 }, () => newSubscription())
    for (const subscription of mine) await put(one.token, subscription)
    for (const subscription of theirs) await put(other.token, subscription)
    for (let round = 0; round < ROUNDS; round += 1) {
      const index = round % 10
      const answers = await race(
        round,
        () => put(one.token, round % 20 < 10 ? theirs[index] : mine[index]),
        () => put(other.token, round % 20 < 10 ? mine[index] : theirs[index]),
      )
      assert.deepEqual(
        answers.map(({ status }) => status),
        [200, 200],
      )
      for (const { id } of [one, other]) assert.ok((await countRows(id)) <= 10)
    }
  })

  test('11 concurrent PUTs of one user leave 10 rows', { timeout: 240_000 }, async () => {
    for (let round = 0; round < ROUNDS / 2; round += 1) {
      const { id, token } = await makeUser(h)
      const answers = await Promise.all(Array.from({ length: 11 }, () => put(token, newSubscription())))
      for (const { status } of answers) assert.equal(status, 200)
      assert.equal(await countRows(id), 10)
    }
  })

  test('the same PUT twice makes one row and answers the same id', async () => {
    const { id, token } = await makeUser(h)
    for (let round = 0; round < ROUNDS; round += 1) {
      const subscription = newSubscription()
      const [one, other] = await Promise.all([put(token, subscription), put(token, subscription)])
      assert.deepEqual([one!.status, one!.text], [200, other!.text])
      await h.call('DELETE', URL, { token, body: { endpoint: subscription.endpoint } })
      assert.equal(await countRows(id), 0)
    }
  })

  test('a PUT against a logout is refused, or its row belongs to the ended session', async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const { id, token } = await makeUser(h)
      await h.call('GET', '/api/v1/auth/me', { token })
      const [stored, ended] = await race(
        round,
        () => put(token, newSubscription()),
        () => h.call('POST', '/api/v1/auth/logout', { token }),
      )
      assert.equal(ended.status, 200)
      assert.ok([200, 401].includes(stored.status), stored.text)
      assert.equal(await countRows(id), stored.status === 200 ? 1 : 0)
      const open = await h.database.sql`
        select from push_subscription join session on session.id = session_id
        where push_subscription.user_id = ${id} and ended_at is null`
      assert.equal(open.length, 0)
    }
  })
})

describe('a push against', () => {
  const client = createPushClient()
  let service: PushService
  before(async () => {
    service = await pushService()
  })
  after(async () => {
    client.close()
    await service.close()
  })

  async function attempt(pushable: Pushable) {
    await queuePush(h.database.sql, pushable, h.ctx.now())
    const delivery = await claimPush(h.database.sql)
    return {
      delivery,
      run: () => sendPush(pushDependencies(h, service, client))(delivery),
      finish: () => h.database.sql`delete from outbox where id = ${delivery.id}`,
    }
  }

  for (const [name, outcome, change] of [
    ['a read', 'read', p => h.call('POST', `/api/v1/notifications/${p.notificationId}/read`, { token: p.token })],
    ['a delete', 'read', p => h.call('DELETE', `/api/v1/notifications/${p.notificationId}`, { token: p.token })],
    ['a logout', 'session', p => h.call('POST', '/api/v1/auth/logout', { token: p.token })],
    [
      'a change of the preferences',
      'off',
      p => h.database.sql`
        insert into notification_preference (user_id, types, updated_at)
        values (${p.userId}, ${JSON.stringify({ game_full: { push: false } })}, ${h.ctx.now()})`,
    ],
    [
      'a DELETE of the subscription',
      'gone',
      p => h.call('DELETE', URL, { token: p.token, body: { endpoint: p.endpoint } }),
    ],
  ] as [string, string, (pushable: Pushable) => Promise<unknown>][]) {
    test(`${name} leaves once or not at all, and never afterwards`, { timeout: 240_000 }, async () => {
      for (let round = 0; round < PUSH_ROUNDS; round += 1) {
        const pushable = await makePushable(h, service)
        service.pushes.length = 0
        const push = await attempt(pushable)
        const [result] = await race(round, push.run, () => change(pushable))
        assert.ok(['delivered', outcome].includes(result.outcome), result.outcome)
        assert.equal(service.pushes.length, result.outcome === 'delivered' ? 1 : 0)
        await push.finish()
        const later = await attempt(pushable)
        const { outcome: afterwards } = await later.run()
        assert.ok([outcome, 'gone'].includes(afterwards), afterwards)
        assert.ok(service.pushes.length <= 1)
        await later.finish()
      }
      assert.deepEqual(service.faults, [])
    })
  }

  test('a browser that subscribes again keeps its new subscription after a 410', { timeout: 240_000 }, async () => {
    for (let round = 0; round < PUSH_ROUNDS; round += 1) {
      service.answer = () => 410
      const pushable = await makePushable(h, service)
      const push = await attempt(pushable)
      const { keys } = newSubscription()
      await race(
        round,
        push.run,
        () => h.database.sql`
          update push_subscription set p256dh = ${keys.p256dh} where id = ${pushable.subscriptionId} returning id`,
      ).then(async ([, updated]) => {
        // If the update came first, its row must still exist.
        assert.equal(await countRows(pushable.userId), updated.length)
      })
      await push.finish()
    }
    service.answer = () => 201
  })

  test('the end of the quiet hours is sent, or its row is ready', { timeout: 240_000 }, async () => {
    const quiet = { quiet_hours: { enabled: true, from: '09:00', to: '21:00' } }
    for (let round = 0; round < PUSH_ROUNDS; round += 1) {
      const pushable = await makePushable(h, service)
      const patch = (body: unknown) =>
        h.call('PATCH', '/api/v1/notification-preferences', { token: pushable.token, body })
      assert.equal((await patch(quiet)).status, 200)
      const push = await attempt(pushable)
      const [result, patched] = await race(round, push.run, () => patch({ quiet_hours: { enabled: false } }))
      assert.equal(patched.status, 200)
      const [row] = await h.database.sql<{ ready: boolean }>`select ready from outbox where id = ${push.delivery.id}`
      assert.ok(result.outcome === 'delivered' || row!.ready, JSON.stringify([round, result, row]))
      await push.finish()
    }
  })

  test('a rotation: a worker without the key and a worker with it send each push once', async () => {
    const [without, with_] = [
      { ...pushDependencies(h, service, client), vapid: createVapid([], 'mailto:admin@club.example') },
      pushDependencies(h, service, client),
    ]
    const pushable = await makePushable(h, service)
    service.pushes.length = 0
    const push = await attempt(pushable)
    assert.equal((await sendPush(without)(push.delivery)).outcome, 'keyless')
    assert.equal((await sendPush(with_)(push.delivery)).outcome, 'delivered')
    assert.equal(service.pushes.length, 1)
    await push.finish()
  })
})
