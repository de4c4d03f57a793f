import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createQueue } from './support/client.ts'
import { createPage, type Page, SYNC, startWatch, writeHead } from './support/watch.ts'

describe('a watch whose stream fails', { timeout: 60_000 }, () => {
  test('if a stream is silent for too long, the watch opens another stream', async t => {
    const w = await startWatch(t, {
      timing: { idleMs: 20, minStreamMs: 0 },
      stream: (response, nth) => writeHead(response).write(nth < 3 ? SYNC : ':\n\n'),
    })
    for (const _ of [1, 2]) {
      await w.until('live')
      await w.until('waiting')
    }
    await w.until('connecting')
  })

  test('if three stream requests get no response headers, the watch polls', async t => {
    const w = await startWatch(t, {
      timing: { headMs: 20 },
      stream: () => {},
      fetchNewest: async () => createPage([7], { unread: 1 }),
    })
    await w.until('polling')
    await w.until('sync {"unread_count":1,"latest_id":7}')
    assert.equal(w.opened(), 3)
  })

  test('if three streams end too early, the watch polls', async t => {
    const w = await startWatch(t, { stream: response => writeHead(response).end(SYNC) })
    await w.until('polling')
    assert.equal(w.opened(), 3)
    assert.equal(w.calls.filter(call => call === 'live').length, 3)
  })

  test('if the platform cannot read a stream, the watch polls and opens no more streams', async t => {
    const w = await startWatch(t, {
      timing: { maxPolls: 2 },
      openStream: async () => ({ body: null }) as Response,
      fetchNewest: (() => {
        let polls = 0
        return async () => createPage([], { unread: polls++ })
      })(),
    })
    await w.until('unread 5')
    assert.equal(w.opened(), 1)
  })

  test('after the maximum number of polls the watch tries the stream again', async t => {
    const w = await startWatch(t, {
      timing: { maxPolls: 3 },
      stream: (response, nth) => (nth < 5 ? response.writeHead(502).end() : writeHead(response).write(SYNC)),
    })
    await w.until('live')
    assert.equal(w.opened(), 5)
    assert.equal(w.calls.filter(call => call === 'polling').length, 2)
  })

  test('if polling succeeds again after an outage, the watch opens a stream', async t => {
    let polls = 0
    const w = await startWatch(t, {
      stream: (response, nth) => (nth < 4 ? response.destroy() : writeHead(response).write(SYNC)),
      fetchNewest: async () => {
        polls += 1
        if (polls < 4) throw new Error('still down')
        return createPage([])
      },
    })
    await w.until('live')
    assert.equal(polls, 4)
    assert.equal(w.calls.includes('polling'), false)
  })

  test('when the browser reports that the network is back, the watch reconnects immediately', async t => {
    const tab = new EventTarget()
    Object.assign(globalThis, {
      addEventListener: tab.addEventListener.bind(tab),
      removeEventListener: tab.removeEventListener.bind(tab),
    })
    t.after(() => {
      for (const name of ['addEventListener', 'removeEventListener']) Reflect.deleteProperty(globalThis, name)
    })
    const w = await startWatch(t, {
      timing: { baseMs: 1e12, maxMs: 1e12 },
      stream: (response, nth) => (nth === 1 ? response.destroy() : writeHead(response).write(SYNC)),
    })
    await w.until('waiting')
    // The watch reports the state `waiting` just before it starts to wait. The event `online` only ends a wait that has
    // started, so the test sends the event a little later.
    await new Promise(resolve => setImmediate(resolve))
    tab.dispatchEvent(new Event('online'))
    await w.until('live')
  })

  test('the watch reconnects if the data of an event is not JSON, and it ignores unknown events', async t => {
    const w = await startWatch(t, {
      stream: (response, nth) =>
        writeHead(response).write(nth === 1 ? 'event: sync\ndata: {"unread\n\n' : `event: news\ndata: x\n\n${SYNC}`),
    })
    await w.until('waiting')
    await w.until('live')
  })

  test('when a watch stops, it closes its connection, and its last call reports the state stopped', async t => {
    const closed = createQueue<void>()
    const w = await startWatch(t, {
      stream(response) {
        response.on('close', () => closed.push())
        writeHead(response).write(SYNC)
      },
    })
    await w.until('unread 2')
    w.stop()
    await closed.next()
    assert.deepEqual(w.calls.slice(-1), ['stopped'])
    w.stop()
    assert.equal(w.calls.filter(call => call === 'stopped').length, 1)
  })
})

describe('a watch that polls', { timeout: 60_000 }, () => {
  const cases: [change: string, first: Page, second: Page, calls: string[]][] = [
    [
      'a new notification',
      createPage([1], { unread: 1 }),
      createPage([2, 1], { unread: 2 }),
      ['notification 2', 'unread 2'],
    ],
    [
      'several new notifications, oldest first',
      createPage([]),
      createPage([4, 2], { unread: 0 }),
      ['notification 2', 'notification 4'],
    ],
    ['a new unread count', createPage([1], { unread: 1 }), createPage([1]), ['unread 0']],
    [
      'a notification that was committed late and has a lower id than the newest notification',
      createPage([3]),
      createPage([3, 2]),
      ['notification 2'],
    ],
    [
      'no older notification that a deletion moves onto the first page',
      createPage([5, 4, 3]),
      createPage([5, 4, 2]),
      [],
    ],
    [
      'a sync if new notifications fill the whole page',
      createPage([1]),
      createPage([9, 8, 7]),
      ['sync {"unread_count":0,"latest_id":9}', 'unread 0'],
    ],
  ]
  for (const [change, first, second, calls] of cases) {
    test(`a watch that polls reports ${change}`, async t => {
      let polls = 0
      const w = await startWatch(t, {
        openStream: async () => ({ body: null }) as Response,
        fetchNewest: async () => {
          polls += 1
          // The unread count 99 of the third page shows that the watch has handled the second page.
          const same = second.data.map(({ id }) => id)
          return polls === 1 ? first : polls === 2 ? second : createPage(same, { unread: 99 })
        },
      })
      await w.until('unread 99')
      const start = w.calls.findIndex(call => call.startsWith('unread')) + 1
      assert.deepEqual(w.calls.slice(start, w.calls.indexOf('unread 99')), calls)
    })
  }
})
