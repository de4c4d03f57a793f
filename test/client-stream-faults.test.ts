import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { describe, type TestContext, test } from 'node:test'
import { type Source, type Timing, watch } from '../client/dist/watch.js'
import { ear, startServer } from './support/client.ts'

const TIMING: Timing = {
  headMs: 60_000,
  silenceMs: 60_000,
  steadyMs: 60_000,
  mostFailures: 3,
  pollMs: 1,
  mostPolls: 1_000_000,
  baseMs: 1,
  mostMs: 5,
}

type Page = Awaited<ReturnType<Source['newest']>>

function pageOf(ids: number[], { unread = 0, per_page = 3 } = {}): Page {
  const data = ids.map(id => ({ id }) as Page['data'][number])
  return { data, meta: { current_page: 1, last_page: 1, per_page, total: ids.length, unread_count: unread } }
}

type Setting = {
  timing?: Partial<Timing>
  /** What the service does with the nth stream, from 1. */
  stream?: (response: ServerResponse, nth: number) => void
  open?: Source['open']
  newest?: () => Promise<Page>
}

/** Watches a service that does as told; what is heard is written down: states as they are, the rest as `name value`. */
async function watching(t: TestContext, { timing, stream, open, newest = async () => pageOf([]) }: Setting) {
  let opened = 0
  let served = 0
  const server = await startServer((_, response) => {
    served += 1
    stream?.(response, served)
  })
  const { hear, next, heard } = ear<string>()
  const source: Source = {
    streams: true,
    signedIn: async () => true,
    onSignedOut: () => () => {},
    open(signal) {
      opened += 1
      return open?.(signal) ?? fetch(server.url, { signal })
    },
    newest,
  }
  const watcher = {
    onSync: (sync: unknown) => hear(`sync ${JSON.stringify(sync)}`),
    onNotification: ({ id }: { id: number }) => hear(`notification ${id}`),
    onUnreadCount: (count: number) => hear(`unread ${count}`),
    onState: hear,
  }
  const stop = watch(source, watcher, { ...TIMING, ...timing })
  t.after(() => {
    stop()
    return server.close()
  })
  return {
    heard,
    stop,
    opened: () => opened,
    async until(wanted: string) {
      while ((await next()) !== wanted);
    },
  }
}

const SYNC = 'event: sync\ndata: {"unread_count":2,"latest_id":7}\n\n'

function head(response: ServerResponse): ServerResponse {
  return response.writeHead(200, { 'content-type': 'text/event-stream' })
}

describe('a stream that fails', { timeout: 60_000 }, () => {
  test('silence is taken for its death; another is opened', async t => {
    const w = await watching(t, {
      timing: { silenceMs: 20, steadyMs: 0 },
      stream: (response, nth) => head(response).write(nth < 3 ? SYNC : ':\n\n'),
    })
    for (const _ of [1, 2]) {
      await w.until('live')
      await w.until('waiting')
    }
    await w.until('connecting')
  })

  test('a head that doesn’t come, three times: it asks instead', async t => {
    const w = await watching(t, { timing: { headMs: 20 }, newest: async () => pageOf([7], { unread: 1 }) })
    await w.until('polling')
    await w.until('sync {"unread_count":1,"latest_id":7}')
    assert.equal(w.opened(), 3)
  })

  test('streams that are cut off at once, as those of a sixth tab are: it asks instead', async t => {
    const w = await watching(t, { stream: response => head(response).end(SYNC) })
    await w.until('polling')
    assert.equal(w.opened(), 3)
    assert.equal(w.heard.filter(said => said === 'live').length, 3)
  })

  test('an answer whose body can’t be streamed: it asks, and tries no more', async t => {
    const w = await watching(t, {
      timing: { mostPolls: 2 },
      open: async () => ({ body: null }) as Response,
      newest: (() => {
        let asked = 0
        return async () => pageOf([], { unread: asked++ })
      })(),
    })
    await w.until('unread 5')
    assert.equal(w.opened(), 1)
  })

  test('while it asks, the stream gets another try now and then', async t => {
    const w = await watching(t, {
      timing: { mostPolls: 3 },
      stream: (response, nth) => (nth < 5 ? response.writeHead(502).end() : head(response).write(SYNC)),
    })
    await w.until('live')
    assert.equal(w.opened(), 5)
    assert.equal(w.heard.filter(said => said === 'polling').length, 2)
  })

  test('when the service is back after an outage it streams again', async t => {
    let asked = 0
    const w = await watching(t, {
      stream: (response, nth) => (nth < 4 ? response.destroy() : head(response).write(SYNC)),
      newest: async () => {
        asked += 1
        if (asked < 4) throw new Error('still down')
        return pageOf([])
      },
    })
    await w.until('live')
    assert.equal(asked, 4)
    assert.equal(w.heard.includes('polling'), false)
  })

  test('when the browser says that the network is back it waits no longer', async t => {
    const tab = new EventTarget()
    Object.assign(globalThis, {
      addEventListener: tab.addEventListener.bind(tab),
      removeEventListener: tab.removeEventListener.bind(tab),
    })
    t.after(() => {
      for (const name of ['addEventListener', 'removeEventListener']) Reflect.deleteProperty(globalThis, name)
    })
    const w = await watching(t, {
      timing: { baseMs: 1e12, mostMs: 1e12 },
      stream: (response, nth) => (nth === 1 ? response.destroy() : head(response).write(SYNC)),
    })
    await w.until('waiting')
    // It begins to wait right after it has said so.
    await new Promise(resolve => setImmediate(resolve))
    tab.dispatchEvent(new Event('online'))
    await w.until('live')
  })

  test('data that is no JSON, or an unknown event', async t => {
    const w = await watching(t, {
      stream: (response, nth) =>
        head(response).write(nth === 1 ? 'event: sync\ndata: {"unread\n\n' : `event: news\ndata: x\n\n${SYNC}`),
    })
    await w.until('waiting')
    await w.until('live')
  })

  test('stopped, it says nothing more and lets go of its connection', async t => {
    const closed = ear<void>()
    const w = await watching(t, {
      stream(response) {
        response.on('close', () => closed.hear())
        head(response).write(SYNC)
      },
    })
    await w.until('unread 2')
    w.stop()
    await closed.next()
    assert.deepEqual(w.heard.slice(-1), ['stopped'])
    w.stop()
    assert.equal(w.heard.filter(said => said === 'stopped').length, 1)
  })
})

describe('what is told when it asks', { timeout: 60_000 }, () => {
  const cases: [what: string, first: Page, then: Page, told: string[]][] = [
    ['one that is new', pageOf([1], { unread: 1 }), pageOf([2, 1], { unread: 2 }), ['notification 2', 'unread 2']],
    ['several, oldest first', pageOf([]), pageOf([4, 2], { unread: 0 }), ['notification 2', 'notification 4']],
    ['the count alone', pageOf([1], { unread: 1 }), pageOf([1]), ['unread 0']],
    ['one that was committed late', pageOf([3]), pageOf([3, 2]), ['notification 2']],
    ['an old one at the end, for which a deletion made room', pageOf([5, 4, 3]), pageOf([5, 4, 2]), []],
    ['more than a page shows', pageOf([1]), pageOf([9, 8, 7]), ['sync {"unread_count":0,"latest_id":9}', 'unread 0']],
  ]
  for (const [what, first, then, told] of cases) {
    test(what, async t => {
      let asked = 0
      const w = await watching(t, {
        open: async () => ({ body: null }) as Response,
        newest: async () => {
          asked += 1
          // The third tells that the second has been dealt with.
          const same = then.data.map(({ id }) => id)
          return asked === 1 ? first : asked === 2 ? then : pageOf(same, { unread: 99 })
        },
      })
      await w.until('unread 99')
      const start = w.heard.findIndex(said => said.startsWith('unread')) + 1
      assert.deepEqual(w.heard.slice(start, w.heard.indexOf('unread 99')), told)
    })
  }
})
