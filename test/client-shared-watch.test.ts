import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { CourtsideError } from 'courtside-client'
import { startServer } from './support/client.ts'
import { waitUntil } from './support/wait-until.ts'
import { createPage, createWatch, SYNC, startWatch, writeHead } from './support/watch.ts'

/** Adds the events of a browser page to Node. @returns functions that send an event to the window or the document */
function installPage(t: TestContext) {
  const [tab, page] = [new EventTarget(), Object.assign(new EventTarget(), { visibilityState: 'visible' })]
  const given = {
    document: page,
    addEventListener: tab.addEventListener.bind(tab),
    removeEventListener: tab.removeEventListener.bind(tab),
  }
  Object.assign(globalThis, given)
  t.after(() => {
    for (const name of Object.keys(given)) Reflect.deleteProperty(globalThis, name)
  })
  return {
    send: (name: string) => tab.dispatchEvent(new Event(name)),
    sendToDocument: (name: string) => page.dispatchEvent(new Event(name)),
  }
}

describe('watchers that share one watch', { timeout: 60_000 }, () => {
  test('a watch that is stopped in the same turn leaves no stream open', async t => {
    // The stored token may come from memory or, much later, from a keychain.
    for (const signedIn of [async () => true, () => delay(20).then(() => true)]) {
      const w = await createWatch(t, { signedIn })
      for (let round = 0; round < 20; round += 1) w.add().stop()
      const aborter = new AbortController()
      w.add(aborter.signal)
      aborter.abort()
      await delay(100)
      assert.equal(w.open(), 0)
    }
  })

  test('a stream is closed even if it opens after the stop, with a fetch that ignores the signal', async t => {
    let release = () => {}
    const w = await createWatch(t, {
      openStream: async () => {
        await new Promise<void>(resolve => {
          release = resolve
        })
        return fetch(w.url)
      },
    })
    const watcher = w.add()
    await waitUntil(() => w.opened() === 1)
    watcher.stop()
    release()
    await waitUntil(() => w.served() === 1)
    await waitUntil(() => w.open() === 0)
    assert.deepEqual(watcher.calls, ['connecting', 'stopped'])
  })

  test('six watchers share one stream, and a late watcher receives the current state', async t => {
    const w = await createWatch(t, {
      stream(response) {
        writeHead(response).write(SYNC)
        response.write('event: notification\ndata: {"id": 9}\n\nevent: unread_count\ndata: {"unread_count": 3}\n\n')
      },
    })
    const watchers = Array.from({ length: 6 }, () => w.add())
    for (const watcher of watchers) await watcher.until('unread 3')
    const late = w.add()
    await late.until('unread 3')
    assert.deepEqual(late.calls, ['live', 'sync {"unread_count":3,"latest_id":9}', 'unread 3'])
    assert.deepEqual([w.opened(), w.open()], [1, 1])
    for (const watcher of [...watchers, late]) {
      assert.equal(w.open(), 1)
      watcher.stop()
    }
    await waitUntil(() => w.open() === 0)
    await w.add().until('unread 3')
    assert.equal(w.opened(), 2)
  })

  test('if a watcher is removed and another is added in the same turn, the stream stays open', async t => {
    const w = await startWatch(t, {})
    await w.until('unread 2')
    for (let round = 0; round < 20; round += 1) {
      const moved = w.add()
      w.stop()
      w.add()
      moved.stop()
    }
    await delay(100)
    assert.deepEqual([w.opened(), w.open()], [1, 1])
  })

  test('a process ends as soon as its watch stops, also during a poll and during the pause after it', async t => {
    for (const when of ['waits for an answer', 'pauses'] as const) {
      const server = await startServer((request, response) => {
        if (request.url!.endsWith('/stream')) return void response.writeHead(502).end()
        if (when === 'pauses') response.end(JSON.stringify(createPage([])))
      })
      const program = `
        import { Courtside, memoryStorage } from 'courtside-client'
        const storage = memoryStorage()
        storage.set('token', 'a.b.c')
        const client = new Courtside({ url: '${server.url}', storage, stream: false })
        const stop = client.notifications.watch({ onState: state => state === 'polling' && stop() })
        if (${when === 'waits for an answer'}) setTimeout(stop, 500)`
      const startedAt = performance.now()
      const child = spawn(process.execPath, ['--input-type=module', '--eval', program], { stdio: 'inherit' })
      t.after(() => child.kill())
      await once(child, 'exit')
      // A poll may wait 30 s for its answer, and the pause after a poll takes 30 s.
      assert.ok(performance.now() - startedAt < 20_000, when)
      await server.close()
    }
  })
})

describe('a watch in a page that hides or wakes up', { timeout: 60_000 }, () => {
  test('the stream ends when the page is hidden permanently or frozen, and a new stream opens when it is back', async t => {
    const { send, sendToDocument } = installPage(t)
    const w = await startWatch(t, {})
    await w.until('unread 2')
    for (const [hide, show] of [
      [() => send('pagehide'), () => send('pageshow')],
      [() => sendToDocument('freeze'), () => sendToDocument('resume')],
    ] as const) {
      hide()
      await waitUntil(() => w.open() === 0)
      send('online')
      sendToDocument('visibilitychange')
      await delay(50)
      assert.equal(w.open(), 0)
      show()
      await w.until('waiting')
      await w.until('unread 2')
      assert.equal(w.open(), 1)
    }
    assert.equal(w.opened(), 3)
  })

  test('a page that wakes up replaces a silent stream immediately, although the old connection looks open', async t => {
    const { send, sendToDocument } = installPage(t)
    const w = await startWatch(t, {})
    await w.until('unread 2')
    const wakes = [
      () => send('online'),
      () => send('pageshow'),
      () => send('focus'),
      () => sendToDocument('visibilitychange'),
      () => sendToDocument('resume'),
    ]
    for (const [index, wake] of wakes.entries()) {
      wake()
      await w.until('connecting')
      await w.until('unread 2')
      assert.equal(w.opened(), index + 2)
      await waitUntil(() => w.open() === 1)
    }
    assert.equal(w.calls.includes('waiting'), false, 'a look does not count as a failure')
  })

  test('a stream that was opened less than minLookMs ago is replaced only if the network is new', async t => {
    const { send } = installPage(t)
    const w = await startWatch(t, { timing: { minLookMs: 60_000 } })
    await w.until('unread 2')
    for (const name of ['focus', 'pageshow']) send(name)
    await delay(50)
    assert.equal(w.opened(), 1)
    send('online')
    await w.until('unread 2')
    assert.equal(w.opened(), 2)
  })

  test('a page that wakes up ends the pause after a failure, but not a wait that the service asked for', async t => {
    const { send } = installPage(t)
    const w = await startWatch(t, {
      timing: { baseMs: 1e12, maxMs: 1e12 },
      openStream: async () => {
        throw new CourtsideError('Busy', 503, 'unavailable', w.opened() === 1 ? {} : { retryAfter: 3600 })
      },
    })
    await w.until('waiting')
    await delay(50)
    send('focus')
    await waitUntil(() => w.opened() === 2)
    await delay(50)
    for (const name of ['focus', 'online', 'pageshow']) send(name)
    await delay(50)
    assert.equal(w.opened(), 2)
  })
})
