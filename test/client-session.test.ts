import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { Courtside, memoryStorage } from 'courtside-client'
import { harness } from './support/app.ts'
import { createQueue, createTabs, failsWith, recordRequests, startServer } from './support/client.ts'
import { listen } from './support/event-stream.ts'
import { makeUser } from './support/factories.ts'
import { queuedCode, readPayload } from './support/scenario.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

const h = harness()
let url: string

/** Creates a signed-in user and puts the user's token into `storage`. */
async function signIn(storage = memoryStorage()) {
  const { token, email } = await makeUser(h)
  await storage.set('token', token)
  return { storage, token, email }
}

describe('the session of the client', { timeout: 60_000 }, () => {
  before(async () => {
    url = await listen(h.app)
  })

  describe('a call that gets a 401', () => {
    test('if a call gets a 401 because its token has expired, the client refreshes the token and repeats the call', async () => {
      const { storage, token, email } = await signIn()
      const { client, sent } = recordRequests({ url, storage })
      h.clock.advance(HOUR_MS + 1000)
      assert.equal((await client.me()).email, email)
      assert.deepEqual(
        sent.map(({ method, path }) => `${method} ${path.split('/').at(-1)}`),
        ['GET me', 'POST refresh', 'GET me'],
      )
      assert.notEqual(await storage.get('token'), token)
      await client.me()
      assert.equal(sent.length, 4)
    })

    test('concurrent calls of one client share one refresh', async () => {
      const { storage } = await signIn()
      const { client, refreshes } = recordRequests({ url, storage })
      h.clock.advance(HOUR_MS + 1000)
      const calls = [client.me(), client.notifications.list(), client.notifications.unreadCount(), client.me()]
      await Promise.all(calls)
      assert.equal(refreshes(), 1)
    })

    test('concurrent calls in two tabs share one refresh', async () => {
      const tab = createTabs()
      const { token } = await signIn(tab())
      const [one, other] = [recordRequests({ url, storage: tab() }), recordRequests({ url, storage: tab() })]
      h.clock.advance(HOUR_MS + 1000)
      await Promise.all([one.client.me(), other.client.me(), one.client.me(), other.client.me()])
      assert.equal(one.refreshes() + other.refreshes(), 1)
      assert.ok([...one.sent, ...other.sent].filter(request => request.token === token).length >= 2)
    })

    test('without Web Locks each of two tabs may refresh once, and both tabs stay signed in', async t => {
      t.mock.method(globalThis, 'navigator', () => undefined, { getter: true })
      const tab = createTabs()
      await signIn(tab())
      const [one, other] = [recordRequests({ url, storage: tab() }), recordRequests({ url, storage: tab() })]
      h.clock.advance(HOUR_MS + 1000)
      await Promise.all([one.client.me(), other.client.me(), one.client.me(), other.client.me()])
      assert.ok(one.refreshes() <= 1 && other.refreshes() <= 1, 'the calls of one tab must share one refresh')
      await Promise.all([one.client.me(), other.client.me()])
      assert.equal(await one.client.signedIn(), true)
    })

    test('if another tab holds the refresh lock, a call waits at most 5 s, and then refreshes without the lock', async t => {
      const { storage, email } = await signIn()
      const name = `courtside-refresh ${url}`
      let release = () => {}
      const held = new Promise<void>(resolve => {
        release = resolve
      })
      t.after(release)
      await new Promise<void>(resolve => {
        void navigator.locks.request(name, () => {
          resolve()
          return held
        })
      })
      const { client, refreshes } = recordRequests({ url, storage })
      h.clock.advance(HOUR_MS + 1000)
      const startedAt = performance.now()
      assert.equal((await client.me()).email, email)
      assert.equal(refreshes(), 1)
      // A request of the other tab may take 30 s, so a call that waited for it would take longer.
      assert.ok(performance.now() - startedAt < 20_000)
    })

    const refuse = () => Promise.reject(new DOMException('Access is denied.', 'SecurityError'))
    for (const [fault, locks] of [
      ['refuses the lock', { request: refuse }],
      ['has locks without methods', {}],
    ] as const) {
      test(`if the browser ${fault}, a call refreshes the token without the lock`, async t => {
        t.mock.method(globalThis, 'navigator', () => ({ locks }), { getter: true })
        const { storage, email } = await signIn()
        const { client, refreshes } = recordRequests({ url, storage })
        h.clock.advance(HOUR_MS + 1000)
        assert.equal((await client.me()).email, email)
        assert.equal(refreshes(), 1)
      })
    }

    test('if a call gets a 401 even after a refresh, the client throws the error and does not refresh twice', async () => {
      const { storage } = await signIn()
      const server = await startServer((request, response) => {
        const isRefresh = request.url!.endsWith('/refresh')
        response.writeHead(isRefresh ? 200 : 401, { 'content-type': 'application/json' })
        response.end(JSON.stringify(isRefresh ? { access_token: 'x.y.z' } : { message: 'No', code: 'unauthenticated' }))
      })
      const { client, sent } = recordRequests({ url: server.url, storage })
      await assert.rejects(client.me(), failsWith(401, 'unauthenticated'))
      assert.deepEqual(
        sent.map(({ path }) => path.split('/').at(-1)),
        ['me', 'refresh', 'me'],
      )
      await server.close()
    })

    test('if another user signs in during a call, the client does not repeat the call with the new token', async () => {
      const tab = createTabs()
      const { token } = await signIn(tab())
      const stranger = await makeUser(h)
      const storage = tab()
      const { client, sent } = recordRequests({
        url,
        storage,
        fetch: async (input, init) => {
          const answer = await fetch(input, init)
          // Before the client gets the answer, another tab stores the token of another user.
          await storage.set('token', stranger.token)
          return answer
        },
      })
      h.clock.advance(HOUR_MS + 1000)
      await assert.rejects(client.assessLevel(1), failsWith(401, 'unauthenticated'))
      assert.deepEqual(
        sent.map(request => request.token),
        [token],
      )
    })
  })

  describe('the end of a session', () => {
    test('after a refused refresh, each tab is signed out once, and the next request for a code is one of a known client', async () => {
      const tab = createTabs()
      const { token, email } = await signIn(tab())
      const [one, other] = [recordRequests({ url, storage: tab() }), recordRequests({ url, storage: tab() })]
      const [first, second] = [createQueue<string>(), createQueue<string>()]
      one.client.onSignedOut(() => first.push('out'))
      other.client.onSignedOut(() => second.push('out'))
      await Promise.all([one.client.me(), other.client.me()])
      h.clock.advance(8 * DAY_MS)
      const refused = await Promise.allSettled([one.client.me(), one.client.notifications.list()])
      assert.deepEqual(
        refused.map(({ status }) => status),
        ['rejected', 'rejected'],
      )
      await Promise.all([first.next(), second.next()])
      assert.equal(one.refreshes(), 1)
      assert.equal(await other.client.signedIn(), false)

      // The client sends the expired token, so the service creates the code for the client of the ended session.
      await other.client.requestOtp({ email })
      assert.equal(other.sent.at(-1)!.token, token)
      const code = await queuedCode(h, email, readPayload(token).sid)
      await other.client.verifyOtp({ email, code })
      assert.equal((await one.client.me()).email, email)
      assert.deepEqual([first.items.length, second.items.length], [1, 1])
    })

    test('after a logout, the other tabs are signed out, and the client sends the old token only to request a code', async () => {
      const tab = createTabs()
      const { token, email } = await signIn(tab())
      const [one, other] = [recordRequests({ url, storage: tab() }), recordRequests({ url, storage: tab() })]
      const signOuts = createQueue<string>()
      const off = one.client.onSignedOut(() => signOuts.push('mine'))
      other.client.onSignedOut(() => signOuts.push('theirs'))
      await other.client.signedIn()
      await one.client.logout()
      assert.deepEqual([await signOuts.next(), await signOuts.next()].sort(), ['mine', 'theirs'])
      await assert.rejects(other.client.me(), failsWith(401, 'unauthenticated'))
      assert.equal(other.sent.at(-1)!.token, undefined)
      await one.client.requestOtp({ email })
      assert.equal(one.sent.at(-1)!.token, token)
      off()
      await one.client.logout()
      assert.equal(one.sent.filter(({ path }) => path.endsWith('/logout')).length, 1)
    })

    test('a logout ends the session at the service even if the token has expired', async () => {
      const { storage } = await signIn()
      const { client } = recordRequests({ url, storage })
      h.clock.advance(HOUR_MS + 1000)
      await client.logout()
      const token = (await storage.get('last_token'))!
      assert.equal((await h.call('POST', '/api/v1/auth/refresh', { token })).status, 401)
    })

    test('if a logout happens during a refresh, the client is signed out after the refresh', async () => {
      const { storage, token } = await signIn()
      const client = new Courtside({
        url,
        storage,
        fetch: async (input, init) => {
          const answer = await fetch(input, init)
          if (String(input).endsWith('/refresh')) await storage.set('token', null)
          return answer
        },
      })
      await assert.rejects(client.refresh(), failsWith(401, 'unauthenticated'))
      assert.notEqual(token, null)
      assert.equal(await client.signedIn(), false)
    })
  })
})
