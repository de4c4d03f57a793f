import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { CourtsideError } from 'courtside-client'
import { failsWith } from './support/client.ts'
import { createClient, fails, installBrowser, NEW_KEY, OLD_KEY, startPushService } from './support/push-browser.ts'

const KEY = 'GET /api/v1/push/key'
const PUT = 'PUT /api/v1/push/subscriptions'
const LOGOUT = 'POST /api/v1/auth/logout'
const WORKER = { serviceWorkerUrl: '/service-worker.js' }

describe('push.state of the client', { timeout: 60_000 }, () => {
  test('outside of a browser the state is unsupported, and neither a state nor a logout sends a push request', async t => {
    const service = await startPushService(t)
    const client = createClient(service.url)
    assert.equal(await client.push.state(), 'unsupported')
    assert.equal(await client.push.enable(WORKER), 'unsupported')
    assert.equal(await client.push.disable(), 'unsupported')
    await client.logout()
    assert.deepEqual(service.requests(), [LOGOUT])
  })

  const withoutPush = ['PushManager', 'Notification']
  const rows: [device: string, options: Parameters<typeof installBrowser>[1], expected: string][] = [
    ['a page without TLS', { navigator: { serviceWorker: undefined } }, 'unsupported'],
    ['a browser without pushes', { missing: ['PushManager'] }, 'unsupported'],
    ['an iPhone outside the home screen', { missing: withoutPush, navigator: { standalone: false } }, 'needs-install'],
    ['an old iPhone on the home screen', { missing: withoutPush, navigator: { standalone: true } }, 'unsupported'],
    ['an iPhone on the home screen', { permission: 'default', navigator: { standalone: true } }, 'default'],
    ['a user who has not been asked', { permission: 'default' }, 'default'],
    ['a user who has refused', { permission: 'denied' }, 'denied'],
    ['a user who has switched nothing on', {}, 'off'],
    ['a subscription for another push service of the app', { subscribed: { key: NEW_KEY, isOurs: false } }, 'off'],
    ['a subscribed device', { subscribed: { key: NEW_KEY, isOurs: true } }, 'on'],
  ]
  for (const [device, options, expected] of rows) {
    test(`push.state of ${device} is ${expected}`, async t => {
      installBrowser(t, options)
      assert.equal(await createClient((await startPushService(t)).url, {}).push.state(), expected)
    })
  }

  test('push.state is unsupported if the service sends no pushes, and throws if the service cannot say', async t => {
    installBrowser(t)
    const off = await startPushService(t, { [KEY]: fails(404, 'not_found') })
    assert.equal(await createClient(off.url).push.state(), 'unsupported')
    const broken = await startPushService(t, { [KEY]: fails(503, 'unavailable') })
    await assert.rejects(createClient(broken.url).push.state(), failsWith(503, 'unavailable'))
  })
})

describe('push.enable of the client', { timeout: 60_000 }, () => {
  test('push.enable asks before it sends a request, subscribes, and sends the subscription to the service', async t => {
    const service = await startPushService(t)
    const browser = installBrowser(t, { permission: 'default', userActivation: { isActive: true } })
    const client = createClient(service.url)
    const enabled = client.push.enable(WORKER)
    // A browser shows its question only if nothing comes between the click and the question.
    assert.deepEqual(browser.calls, ['ask'])
    assert.equal(await enabled, 'on')
    assert.deepEqual(browser.calls, ['ask', 'register /service-worker.js', 'subscribe'])
    assert.deepEqual(service.requests(), [KEY, KEY, PUT])
    const { token, body } = service.received[2]!
    assert.equal(token, 'a.b.c')
    assert.deepEqual(body, {
      endpoint: 'https://push.example/1',
      expirationTime: null,
      keys: { p256dh: 'p', auth: 'a' },
      public_key: NEW_KEY,
      time_zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    })
    assert.equal(await client.push.state(), 'on')
  })

  test('without a click, push.enable does not ask for the permission', async t => {
    const service = await startPushService(t)
    const browser = installBrowser(t, { permission: 'default', userActivation: { isActive: false } })
    assert.equal(await createClient(service.url).push.enable(WORKER), 'default')
    assert.deepEqual(browser.calls, [])
  })

  test('if the user refuses, push.enable returns denied and subscribes nothing', async t => {
    const service = await startPushService(t)
    const browser = installBrowser(t, { permission: 'default', answer: 'denied' })
    assert.equal(await createClient(service.url).push.enable(WORKER), 'denied')
    assert.deepEqual(browser.calls, ['ask'])
    assert.deepEqual(service.requests(), [KEY])
  })

  test('if the service refuses the subscription, push.enable throws its error, and the state is off', async t => {
    const errors = { endpoint: ['This push service is not allowed.'] }
    const service = await startPushService(t, { [PUT]: fails(422, 'validation_failed', errors) })
    installBrowser(t)
    const client = createClient(service.url)
    await assert.rejects(client.push.enable(WORKER), (error: CourtsideError) => {
      assert.deepEqual(error.errors, errors)
      return failsWith(422, 'validation_failed')(error)
    })
    assert.equal(await client.push.state(), 'off')
  })

  test('if the browser cannot subscribe, push.enable throws push_failed with a text for the user and the cause', async t => {
    const cause = new Error('push service error')
    installBrowser(t, { subscribe: () => Promise.reject(cause) })
    const client = createClient((await startPushService(t)).url)
    await assert.rejects(client.push.enable(WORKER), (error: CourtsideError) => {
      assert.equal(error.message, 'The browser refuses notifications.')
      assert.equal(error.cause, cause)
      return failsWith(0, 'push_failed')(error)
    })
    assert.equal(await client.push.state(), 'off')
  })

  test('push.enable replaces a subscription that the browser made with another key', async t => {
    const browser = installBrowser(t, { subscribed: { key: OLD_KEY, isOurs: false } })
    assert.equal(await createClient((await startPushService(t)).url).push.enable(WORKER), 'on')
    assert.deepEqual(browser.calls, ['register /service-worker.js', 'unsubscribe', 'subscribe'])
  })
})
