import assert from 'node:assert/strict'
import { request } from 'node:http'
import { after, before, describe, test } from 'node:test'
import { startChannels } from '../src/channels.ts'
import { sendPush } from '../src/reach/push-channel.ts'
import { createPushClient } from '../src/reach/push-client.ts'
import { createFindEndpoint } from '../src/reach/push-hosts.ts'
import { anotherApp, harness } from './support/app.ts'
import { makeUser } from './support/factories.ts'
import { claimPush, makePushable, pushDependencies, queuePush } from './support/push.ts'

describe('the development push service', () => {
  const h = harness()
  const client = createPushClient()
  let address: string

  before(async () => {
    address = await h.app.listen({ host: '127.0.0.1', port: 0 })
  })
  after(() => client.close())

  const keyed = (path: string) => `${address}${path}?key=${h.ctx.mailbox!.key}`
  const subscribe = async () => {
    const answer = await fetch(keyed('/dev/push/subscriptions'), { method: 'POST' })
    assert.equal(answer.status, 201)
    return (await answer.json()) as { endpoint: string; keys: { p256dh: string; auth: string } }
  }
  const list = async () => (await (await fetch(keyed('/dev/push/messages.json'))).json()) as any[]

  /** Sends one push as the worker of this process does. */
  async function send(endpoint: string) {
    const { keys } = await subscribe()
    const own = { subscribe: () => ({ endpoint, keys }) }
    return sendWith(own)
  }

  async function sendWith(own: { subscribe: () => { endpoint: string; keys: { p256dh: string; auth: string } } }) {
    const pushable = await makePushable(h, own)
    await queuePush(h.database.sql, pushable, h.ctx.now())
    const delivery = await claimPush(h.database.sql)
    const findEndpoint = createFindEndpoint(h.ctx.config.pushHosts, () => Number(new URL(address).port))
    const attempt = await sendPush({ ...pushDependencies(h, { hosts: 'x' }, client), findEndpoint })(delivery)
    await h.database.sql`delete from outbox where id = ${delivery.id}`
    return { attempt, pushable }
  }

  test('makes a subscription, which PUT accepts, and shows the decrypted pushes, the newest first', async () => {
    const made = await subscribe()
    assert.match(made.endpoint, new RegExp(`^${address}/dev/push/messages/[\\w-]{24}$`))
    const { token } = await makeUser(h)
    assert.equal((await h.call('PUT', '/api/v1/push/subscriptions', { token, body: made })).status, 200)
    const pushables = []
    for (let count = 0; count < 2; count += 1) {
      const other = await subscribe()
      const { attempt, pushable } = await sendWith({ subscribe: () => other })
      assert.deepEqual(attempt, { outcome: 'delivered' })
      pushables.unshift(pushable)
    }
    const messages = await list()
    assert.deepEqual(
      messages.map(({ endpoint, message }) => [endpoint, message.notification.data.id]),
      pushables.map(({ endpoint, notificationId }) => [endpoint, notificationId]),
    )
    const { sent_at, ttl, urgency, topic } = messages[0]
    assert.deepEqual([sent_at, ttl, urgency, topic.length], ['2026-11-28T10:00:00+00:00', 3_600, 'normal', 32])
  })

  test('answers 404 for a subscription that it does not know, so the service removes the subscription', async () => {
    const { attempt, pushable } = await send(`${address}/dev/push/messages/${'x'.repeat(24)}`)
    assert.deepEqual(attempt, { outcome: 'gone' })
    assert.deepEqual(await h.database.sql`select id from push_subscription where id = ${pushable.subscriptionId}`, [])
  })

  test('is called by the worker at port 80 too, which a URL does not name', async () => {
    const { channels, stop } = startChannels(h.ctx, 'http://127.0.0.1:80')
    const { keys } = await subscribe()
    const own = { subscribe: () => ({ endpoint: 'http://127.0.0.1/dev/push/messages/x', keys }) }
    await queuePush(h.database.sql, await makePushable(h, own), h.ctx.now())
    const delivery = await claimPush(h.database.sql)
    const attempt = await channels.find(({ name }) => name === 'push')!.deliver(delivery)
    await h.database.sql`delete from outbox where id = ${delivery.id}`
    await stop()
    // Whether a server listens at this port depends on the machine.
    assert.notEqual(attempt.outcome, 'unlisted')
  })

  test('refuses a push that was not made for its subscription', async () => {
    const { endpoint } = await subscribe()
    const { attempt } = await send(endpoint)
    assert.deepEqual(attempt, { outcome: 'refused' })
    for (const body of ['', 'x', 'x'.repeat(200)]) {
      const { status } = await fetch(endpoint, { method: 'POST', body })
      assert.equal(status, 422)
    }
  })

  test('keeps the newest 100 subscriptions and pushes', async () => {
    const first = await subscribe()
    for (let count = 0; count < 100; count += 1) await subscribe()
    const { attempt } = await sendWith({ subscribe: () => first })
    assert.deepEqual(attempt, { outcome: 'gone' })
  })

  test('is a 404 without the key of the mailbox, and for a request that comes through a proxy', async () => {
    for (const [method, path] of [
      ['POST', '/dev/push/subscriptions'],
      ['GET', '/dev/push/messages.json'],
    ] as const) {
      for (const query of ['', '?key=', '?key=wrong']) {
        assert.equal((await fetch(`${address}${path}${query}`, { method })).status, 404)
      }
      const headers = { 'x-forwarded-for': '203.0.113.1' }
      assert.equal((await fetch(keyed(path), { method, headers })).status, 404)
    }
    const { endpoint } = await subscribe()
    assert.equal((await fetch(endpoint, { method: 'POST', headers: { forwarded: 'for=1.2.3.4' } })).status, 404)
    assert.equal(await statusWithHost(endpoint, 'evil.example'), 404)
  })

  test('does not exist in a process with a mail server', async () => {
    const other = await anotherApp(h, { SMTP_URL: 'smtp://127.0.0.1:1', MAIL_FROM: 'no-reply@club.example' })
    for (const [method, path] of [
      ['POST', '/dev/push/subscriptions'],
      ['POST', '/dev/push/messages/x'],
      ['GET', '/dev/push/messages.json'],
    ] as const) {
      assert.equal((await other.call(method, path)).status, 404)
    }
    await other.close()
  })

  function statusWithHost(url: string, host: string): Promise<number | undefined> {
    return new Promise((resolve, reject) => {
      request(url, { method: 'POST', headers: { host } }, ({ statusCode }) => resolve(statusCode))
        .on('error', reject)
        .end()
    })
  }
})
