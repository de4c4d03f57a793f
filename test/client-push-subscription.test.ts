import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { Courtside } from 'courtside-client'
import { failsWith } from './support/client.ts'
import {
  createClient,
  fails,
  installBrowser,
  NEW_KEY,
  OLD_KEY,
  SCOPE,
  startPushService,
} from './support/push-browser.ts'
import { newEmail } from './support/scenario.ts'
import { waitUntil } from './support/wait-until.ts'

const KEY = 'GET /api/v1/push/key'
const PUT = 'PUT /api/v1/push/subscriptions'
const DELETE = 'DELETE /api/v1/push/subscriptions'
const LOGOUT = 'POST /api/v1/auth/logout'

const settle = () => new Promise(resolve => setTimeout(resolve, 100))

describe('the start of the client', { timeout: 60_000 }, () => {
  test('the client confirms a subscription with the key of the service', async t => {
    const service = await startPushService(t)
    const browser = installBrowser(t, { subscribed: { key: NEW_KEY, isOurs: true } })
    createClient(service.url)
    await waitUntil(() => service.received.length === 2)
    assert.deepEqual(service.requests(), [KEY, PUT])
    assert.equal(service.received[1]!.body.endpoint, 'https://push.example/1')
    assert.deepEqual(browser.calls, [])
  })

  for (const [case_, key] of [
    ['the service has a new key', OLD_KEY],
    ['the browser has lost the subscription', undefined],
  ] as const) {
    test(`if ${case_}, the client subscribes again and confirms the new subscription`, async t => {
      const service = await startPushService(t)
      const browser = installBrowser(t, key ? { subscribed: { key, isOurs: true } } : {})
      browser.items.set('courtside.push', SCOPE)
      createClient(service.url)
      await waitUntil(() => service.received.length === 2)
      assert.deepEqual(browser.calls, key ? ['unsubscribe', 'subscribe'] : ['subscribe'])
      assert.equal(service.received[1]!.body.public_key, NEW_KEY)
    })
  }

  test('two tabs that start at the same time make one new subscription, and both confirm it', async t => {
    for (let round = 0; round < 20; round += 1) {
      await t.test(`round ${round}`, async t => {
        const service = await startPushService(t)
        const browser = installBrowser(t, { subscribed: { key: OLD_KEY, isOurs: true } })
        createClient(service.url)
        createClient(service.url)
        await waitUntil(() => service.requests().filter(request => request === PUT).length === 2)
        assert.deepEqual(browser.calls, ['unsubscribe', 'subscribe'])
        const endpoints = service.received.filter(({ request }) => request === PUT).map(({ body }) => body.endpoint)
        assert.deepEqual(endpoints, ['https://push.example/2', 'https://push.example/2'])
      })
    }
  })

  test('the client does not touch a subscription for another push service of the app', async t => {
    const service = await startPushService(t)
    const browser = installBrowser(t, { subscribed: { key: OLD_KEY, isOurs: false } })
    createClient(service.url)
    await settle()
    assert.deepEqual([service.requests(), browser.calls], [[], []])
  })

  test('if the user is signed out, the client confirms the subscription after the sign-in', async t => {
    const service = await startPushService(t)
    installBrowser(t, { subscribed: { key: NEW_KEY, isOurs: true } })
    const client = createClient(service.url, {})
    await settle()
    assert.deepEqual(service.requests(), [])
    await client.verifyOtp({ email: newEmail(), code: '1234' })
    await waitUntil(() => service.received.length === 3)
    assert.deepEqual(service.requests().slice(1), [KEY, PUT])
  })

  test('if the service sends no pushes any more, the subscription stays as it is', async t => {
    const service = await startPushService(t, { [KEY]: fails(404, 'not_found') })
    const browser = installBrowser(t, { subscribed: { key: OLD_KEY, isOurs: true } })
    createClient(service.url)
    await waitUntil(() => service.received.length === 1)
    await settle()
    assert.deepEqual([service.requests(), browser.calls, browser.isSubscribed()], [[KEY], [], true])
  })
})

describe('the end of a subscription', { timeout: 60_000 }, () => {
  const subscribed = { key: NEW_KEY, isOurs: true }
  const start = async (t: TestContext, options: Parameters<typeof installBrowser>[1] = {}, answers = {}) => {
    const service = await startPushService(t, answers)
    return { service, browser: installBrowser(t, { subscribed, ...options }) }
  }

  test('a logout and a deletion of the account end the subscription of the browser', async t => {
    for (const leave of [(client: Courtside) => client.logout(), (client: Courtside) => client.deleteAccount('1234')]) {
      await t.test(`${leave}`, async t => {
        const { service, browser } = await start(t)
        const client = createClient(service.url)
        await waitUntil(() => service.received.length === 2)
        await leave(client)
        assert.deepEqual(browser.calls, ['unsubscribe'])
        assert.equal(browser.items.size, 0)
        assert.equal(await client.signedIn(), false)
        assert.equal(await client.push.state(), 'off')
      })
    }
  })

  test('a logout ends the subscription of the browser even if the service cannot be reached', async t => {
    const { service, browser } = await start(t, {}, { [LOGOUT]: fails(503, 'unavailable') })
    await assert.rejects(createClient(service.url).logout(), failsWith(503, 'unavailable'))
    assert.equal(browser.isSubscribed(), false)
  })

  test('a logout waits at most 2 s for a browser that does not end its subscription', async t => {
    const { service } = await start(t, { unsubscribe: () => new Promise(() => {}) })
    const client = createClient(service.url)
    const before = performance.now()
    await client.logout()
    const waited = performance.now() - before
    assert.ok(waited >= 1_900 && waited < 20_000, `${waited} ms`)
    assert.equal(await client.signedIn(), false)
  })

  test('a logout while a confirmation gets no answer ends the subscription too, and the next user is not subscribed', async t => {
    const { service, browser } = await start(t, {}, { [PUT]: () => {} })
    const client = createClient(service.url)
    await waitUntil(() => service.requests().includes(PUT))
    await client.logout()
    assert.equal(browser.items.size, 0)
    await waitUntil(() => !browser.isSubscribed())
    await client.verifyOtp({ email: newEmail(), code: '1234' })
    await settle()
    assert.equal(service.requests().filter(request => request === PUT).length, 1)
    assert.equal(browser.isSubscribed(), false)
  })

  test('push.disable tells the service, with the last token if the session has ended', async t => {
    for (const [tokens, token] of [
      [{ token: 'a.b.c' }, 'a.b.c'],
      [{ last_token: 'old.b.c' }, 'old.b.c'],
    ] as const) {
      await t.test(token, async t => {
        const { service, browser } = await start(t)
        assert.equal(await createClient(service.url, tokens).push.disable(), 'off')
        const { body, token: sent } = service.received.find(({ request }) => request === DELETE)!
        assert.deepEqual([body, sent], [{ endpoint: 'https://push.example/1' }, token])
        assert.deepEqual([browser.isSubscribed(), browser.items.size], [false, 0])
      })
    }
  })

  test('push.disable ends the subscription even if the service cannot be reached', async t => {
    const { service, browser } = await start(t, {}, { [DELETE]: fails(503, 'unavailable') })
    assert.equal(await createClient(service.url).push.disable(), 'off')
    assert.equal(browser.isSubscribed(), false)
  })

  test('if the browser does not end its subscription, push.disable fails after it has told the service', async t => {
    const cause = new Error('no storage')
    const { service } = await start(t, { unsubscribe: () => Promise.reject(cause) })
    const client = createClient(service.url)
    await assert.rejects(client.push.disable(), cause)
    await waitUntil(() => service.requests().includes(DELETE))
    assert.equal(await client.push.state(), 'off')
  })
})
