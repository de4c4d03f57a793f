import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { Courtside, memoryStorage, type Notification, type Watcher } from 'courtside-client'
import { harness } from './support/app.ts'
import { createQueue, recordRequests } from './support/client.ts'
import { listen } from './support/event-stream.ts'
import { makeNotifications, makeUser } from './support/factories.ts'

const h = harness()
let url: string

/** Creates a signed-in user, and a client for this user. */
async function createUserWithClient() {
  const user = await makeUser(h)
  const storage = memoryStorage()
  await storage.set('token', user.token)
  return { ...user, storage, ...recordRequests({ url, storage }) }
}

type Call = [listener: string, value: unknown]

/** Creates a watcher, and functions that wait for the calls of the watcher's listeners. */
function createWatcher(): {
  watcher: Watcher
  next(): Promise<Call>
  until(listener: string, value?: unknown): Promise<unknown>
} {
  const { push, next } = createQueue<Call>()
  return {
    watcher: {
      onSync: sync => push(['sync', sync]),
      onNotification: notification => push(['notification', notification]),
      onUnreadCount: count => push(['unread', count]),
      onState: state => push(['state', state]),
    },
    next,
    async until(listener, wanted) {
      // If the wanted call never comes, `next` waits until the suite times out.
      for (;;) {
        const [called, value] = await next()
        if (called === listener && (wanted === undefined || value === wanted)) return value
      }
    },
  }
}

describe('the notifications of the client', { timeout: 60_000 }, () => {
  before(async () => {
    url = await listen(h.app)
  })

  test('the client can list, count, read and delete the notifications of its user', async () => {
    const { client, id } = await createUserWithClient()
    const ids = await makeNotifications(h, id, 5)
    const { notifications } = client
    const page = await notifications.list({ per_page: 2 })
    assert.deepEqual(
      page.data.map(({ id }) => id),
      ids.slice(3).reverse(),
    )
    assert.deepEqual(page.meta, { current_page: 1, last_page: 3, per_page: 2, total: 5, unread_count: 5 })
    assert.equal((await notifications.list({ page: 3, per_page: 2 })).data.length, 1)
    const read = await notifications.read(ids[0]!)
    assert.deepEqual([read.id, read.is_read], [ids[0], true])
    assert.equal((await notifications.readAll([ids[0]!, ids[1]!])).count, 1)
    await notifications.delete(ids[2]!)
    assert.equal(await notifications.unreadCount(), 2)
    assert.equal((await notifications.readAll()).count, 2)
    const many = await makeNotifications(h, id, 205)
    assert.equal((await notifications.readAll(many.slice(0, 203))).count, 203)
    assert.equal(await notifications.unreadCount(), 2)
    await assert.rejects(notifications.delete(ids[2]!), { status: 404, code: 'not_found' })
  })

  test('pages() and all() yield no notification twice, even if new notifications arrive meanwhile', async () => {
    const { client, id, sent } = await createUserWithClient()
    const ids = await makeNotifications(h, id, 6)
    const newestFirst = ids.toReversed()
    const walked: number[][] = []
    for await (const { data } of client.notifications.pages({ per_page: 3 })) {
      walked.push(data.map(({ id }) => id))
      await makeNotifications(h, id, 2)
    }
    assert.deepEqual(walked, [newestFirst.slice(0, 3), newestFirst.slice(3)])

    sent.length = 0
    const first: number[] = []
    for await (const { id } of client.notifications.all({ per_page: 5 })) {
      first.push(id)
      if (first.length === 6) break
    }
    assert.equal(first.length, 6)
    assert.equal(sent.length, 2, 'the client fetches a page only when the caller needs it')
    const all: Notification[] = []
    for await (const notification of client.notifications.all()) all.push(notification)
    assert.deepEqual(
      all.slice(-6).map(({ id }) => id),
      newestFirst,
    )
    assert.equal(new Set(all.map(({ id }) => id)).size, all.length)
  })

  test('pages() yields one empty page for an empty inbox', async () => {
    const { client } = await createUserWithClient()
    const pages = []
    for await (const page of client.notifications.pages()) pages.push(page.data)
    assert.deepEqual(pages, [[]])
  })

  test('a watch first reports a sync, then each new notification and each change of the unread count', async t => {
    const { client, id } = await createUserWithClient()
    const [old] = await makeNotifications(h, id, 1)
    const { watcher: listeners, next } = createWatcher()
    const stop = client.notifications.watch(listeners)
    t.after(stop)
    assert.deepEqual(await next(), ['state', 'connecting'])
    assert.deepEqual(await next(), ['state', 'live'])
    assert.deepEqual(await next(), ['sync', { unread_count: 1, latest_id: old }])
    assert.deepEqual(await next(), ['unread', 1])
    const [fresh] = await makeNotifications(h, id, 1)
    const listed = (await client.notifications.list()).data[0]!
    assert.equal(listed.id, fresh)
    // The stream may repeat the old notification. If the new notification never comes, the suite times out in `next`.
    let call = await next()
    while (call[0] !== 'notification' || (call[1] as Notification).id === old) call = await next()
    assert.deepEqual(call[1], listed)
    assert.deepEqual(await next(), ['unread', 2])
    await client.notifications.readAll()
    assert.deepEqual(await next(), ['unread', 0])
    stop()
    assert.deepEqual(await next(), ['state', 'stopped'])
  })

  test('when a stream ends because its token has expired, the watch opens another stream with a new token', async t => {
    const { client, id, refreshes } = await createUserWithClient()
    // The token has 100 ms left. So the service starts a real timer of 100 ms when the stream opens. When the timer
    // fires, the service reads its own clock. The test advances this clock after the stream has opened.
    h.clock.advance(3_600_000 - 100)
    const { watcher, until } = createWatcher()
    t.after(client.notifications.watch(watcher))
    await until('state', 'live')
    h.clock.advance(1_000)
    await until('state', 'waiting')
    await until('state', 'live')
    assert.equal(refreshes(), 1)
    await until('sync')
    const [fresh] = await makeNotifications(h, id, 1)
    assert.equal(((await until('notification')) as Notification).id, fresh)
  })

  test('a logout in another tab stops the watch', async t => {
    const { client, storage } = await createUserWithClient()
    const { watcher, until } = createWatcher()
    t.after(client.notifications.watch(watcher))
    await until('state', 'live')
    await new Courtside({ url, storage }).logout()
    await until('state', 'stopped')
  })

  test('a watch without a stored token stops without sending a request', async t => {
    const { client, sent } = recordRequests({ url })
    const { watcher, next } = createWatcher()
    t.after(client.notifications.watch(watcher))
    assert.deepEqual(await next(), ['state', 'stopped'])
    assert.deepEqual(sent, [])
  })

  test('a watch stops when its signal is aborted, or immediately if the signal is already aborted', async t => {
    const { client } = await createUserWithClient()
    const { watcher, until } = createWatcher()
    const aborter = new AbortController()
    t.after(client.notifications.watch({ ...watcher, signal: aborter.signal }))
    await until('state', 'live')
    aborter.abort()
    await until('state', 'stopped')
    t.after(client.notifications.watch({ ...watcher, signal: aborter.signal }))
    await until('state', 'stopped')
  })

  test('in React Native, whose fetch cannot stream, the watch polls', async t => {
    t.mock.method(globalThis, 'navigator', () => ({ product: 'ReactNative' }), { getter: true })
    const { client, id, sent } = await createUserWithClient()
    const [old] = await makeNotifications(h, id, 1)
    const { watcher, next } = createWatcher()
    t.after(client.notifications.watch(watcher))
    assert.deepEqual(await next(), ['state', 'polling'])
    assert.deepEqual(await next(), ['sync', { unread_count: 1, latest_id: old }])
    assert.ok(sent.every(({ path }) => path === '/api/v1/notifications'))
  })

  test('in React Native, with the option stream, the watch opens a stream', async t => {
    t.mock.method(globalThis, 'navigator', () => ({ product: 'ReactNative' }), { getter: true })
    const { storage } = await createUserWithClient()
    const { watcher, until } = createWatcher()
    const client = new Courtside({ url, storage, fetch: (input, init) => fetch(input, init), stream: true })
    t.after(client.notifications.watch(watcher))
    await until('state', 'live')
  })
})
