// Rules of the client that need no service.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { Courtside, memoryStorage } from 'courtside-client'
import { Reporter } from 'courtside-client/server'
import { wait } from '../client/dist/backoff.js'
import { splitIntoBatches } from '../client/dist/batches.js'
import { InboxList } from '../client/dist/inbox/inbox-list.js'
import { computePlace } from '../client/dist/inbox/place.js'
import { toReliable } from '../client/dist/storage.js'
import { receive } from '../client/dist/tab-messages.js'
import { startServer } from './support/client.ts'

test('a wait of a month, for which a timer of JavaScript is too short, does not end at once', async () => {
  const waiting = new AbortController()
  let hasEnded = false
  const month = wait(30 * 86_400_000, waiting.signal).then(() => {
    hasEnded = true
  })
  await delay(50)
  assert.equal(hasEnded, false)
  waiting.abort()
  await month
})

test('a batch has at most 1 MiB, with its brackets and commas', () => {
  const MiB = 1024 * 1024
  for (const [tooMany, batches] of [
    [0, 1],
    [1, 2],
  ] as const) {
    const first = 'x'.repeat(1_000)
    const events = [first, 'x'.repeat(MiB - first.length - '[,]'.length + tooMany)]
    const split = splitIntoBatches(events)
    assert.equal(split.length, batches)
    for (const batch of split) assert.ok(`[${batch}]`.length <= MiB)
  }
})

test('a panel that fits below the bell opens below it, even if there is more room above', () => {
  const bell = { left: 0, top: 500, width: 44, height: 44 }
  const { top } = computePlace(bell, { width: 300, height: 200 }, { width: 800, height: 800 }, false)
  assert.equal(top, 552)
})

test('after another tab has changed the storage, its value counts and not the one that the storage refused', async () => {
  let change = () => {}
  let stored = 'old'
  const storage = toReliable({
    get: () => stored,
    set: () => {
      throw new Error('full')
    },
    onChange: listener => {
      change = listener
      return () => {}
    },
  })
  storage.onChange!(() => {})
  await storage.set('token', 'mine')
  assert.equal(await storage.get('token'), 'mine')
  stored = 'of the other tab'
  change()
  assert.equal(await storage.get('token'), 'of the other tab')
})

test('a tab tells its page of a sync only if the answer of the leading tab differs from what it knows', () => {
  const known = { unread_count: 1, latest_id: 7 }
  const told: unknown[] = []
  const notifier = {
    state: () => 'live' as const,
    setState: () => {},
    notifySync: (sync: unknown) => told.push(sync),
    notifyNotification: () => {},
    notifyUnreadCount: () => {},
  }
  const inbox = { notifier, latest: () => ({ state: 'live' as const, sync: known }) }
  const answer = (sync: typeof known) => ({ type: 'answer' as const, state: 'live' as const, sync })
  receive(answer({ ...known }), inbox as never, true)
  assert.deepEqual(told, [])
  receive(answer({ ...known, unread_count: 2 }), inbox as never, true)
  receive(answer({ ...known, latest_id: 8 }), inbox as never, true)
  receive(answer({ ...known }), inbox as never, false)
  assert.equal(told.length, 3)
})

test('a double click on "delete" lowers the unread count once', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const list = new InboxList({ notifications: { delete: () => promise } } as never, () => {})
  list.items = [
    { id: 1, is_read: false },
    { id: 2, is_read: false },
  ] as never
  list.unread = 2
  const deletions = [list.delete(1), list.delete(1)]
  assert.equal(list.unread, 1)
  resolve()
  await Promise.all(deletions)
  assert.equal(list.unread, 1)
})

test('a call that gets no answer fails with the error code network after 30 s', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let outcome: unknown
  const silent: typeof fetch = (_, init) =>
    new Promise((_, reject) => init!.signal!.addEventListener('abort', () => reject(init!.signal!.reason)))
  const call = new Courtside({ url: 'http://service.example', fetch: silent }).gameLevels().catch(error => {
    outcome = error.code
  })
  // The client sends its request before this promise resolves.
  await new Promise(resolve => setImmediate(resolve))
  t.mock.timers.tick(29_999)
  await new Promise(resolve => setImmediate(resolve))
  assert.equal(outcome, undefined)
  t.mock.timers.tick(1)
  await call
  assert.equal(outcome, 'network')
})

test('a sign-in removes the last token of the previous session', async t => {
  const server = await startServer((_, response) =>
    response.end(JSON.stringify({ access_token: 'a.b.c', is_new_user: false })),
  )
  t.after(server.close)
  const storage = memoryStorage()
  storage.set('last_token', 'old')
  await new Courtside({ url: server.url, storage }).verifyOtp({ email: 'zoe@example.com', code: '0427' })
  assert.deepEqual([await storage.get('token'), await storage.get('last_token')], ['a.b.c', null])
})

test('a report that is aborted between two attempts fails with the error of the last attempt', async t => {
  let requests = 0
  const aborter = new AbortController()
  const server = await startServer((_, response) => {
    requests += 1
    response.writeHead(503, { 'retry-after': '3600' }).end()
    setTimeout(() => aborter.abort(), 100)
  })
  t.after(server.close)
  const reporter = new Reporter({ url: server.url, key: 'x'.repeat(32), source: '/games' })
  const event = { type: 'game_cancelled', data: { game_id: 1, creator_id: 1, player_ids: [1] } } as const
  await assert.rejects(reporter.report(event as never, { signal: aborter.signal }), { status: 503 })
  assert.equal(requests, 1)
})
