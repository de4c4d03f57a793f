import type { ServerResponse } from 'node:http'
import type { TestContext } from 'node:test'
import { SharedWatch } from '../../client/dist/shared-watch.js'
import type { NotificationSource, Timing } from '../../client/dist/watch-types.js'
import { createQueue, startServer } from './client.ts'

const TIMING: Timing = {
  headMs: 60_000,
  idleMs: 60_000,
  minStreamMs: 60_000,
  minLookMs: 0,
  maxFailures: 3,
  pollMs: 1,
  maxPolls: 1_000_000,
  baseMs: 1,
  maxMs: 5,
}

export type Page = Awaited<ReturnType<NotificationSource['fetchNewest']>>

export function createPage(ids: number[], { unread = 0, per_page = 3 } = {}): Page {
  const data = ids.map(id => ({ id }) as Page['data'][number])
  return { data, meta: { current_page: 1, last_page: 1, per_page, total: ids.length, unread_count: unread } }
}

export const SYNC = 'event: sync\ndata: {"unread_count":2,"latest_id":7}\n\n'

export function writeHead(response: ServerResponse): ServerResponse {
  return response.writeHead(200, { 'content-type': 'text/event-stream' })
}

type Options = {
  timing?: Partial<Timing>
  /** Answers a stream request. `nth` is 1 for the first request. By default, each stream begins with a sync. */
  stream?: (response: ServerResponse, nth: number) => void
  openStream?: NotificationSource['openStream']
  signedIn?: NotificationSource['signedIn']
  fetchNewest?: NotificationSource['fetchNewest']
}

/**
 * Creates a watch for several watchers, and a server with streams.
 * @returns `open`, the number of streams that are open at the server, and `add`, which adds a watcher. `calls` records
 * the calls of the watcher's listeners. A call of `onState` is recorded as the state. Any other call is recorded as a
 * name and a value, such as `unread 2`.
 */
export async function createWatch(t: TestContext, options: Options = {}) {
  const { stream = response => void writeHead(response).write(SYNC) } = options
  let [opened, served, open] = [0, 0, 0]
  const server = await startServer((_, response) => {
    served += 1
    open += 1
    response.on('close', () => {
      open -= 1
    })
    stream(response, served)
  })
  const shared = new SharedWatch(
    {
      canStream: true,
      signedIn: options.signedIn ?? (async () => true),
      onSignedOut: () => () => {},
      openStream(signal) {
        opened += 1
        return options.openStream?.(signal) ?? fetch(server.url, { signal })
      },
      fetchNewest: options.fetchNewest ?? (async () => createPage([])),
    },
    { ...TIMING, ...options.timing },
  )

  function add(signal?: AbortSignal) {
    const { push, next, items: calls } = createQueue<string>()
    const stop = shared.watch({
      onSync: sync => push(`sync ${JSON.stringify(sync)}`),
      onNotification: ({ id }) => push(`notification ${id}`),
      onUnreadCount: count => push(`unread ${count}`),
      onState: push,
      ...(signal && { signal }),
    })
    t.after(stop)
    return {
      calls,
      stop,
      async until(wanted: string) {
        // If the wanted call never comes, `next` waits until the suite times out.
        while ((await next()) !== wanted);
      },
    }
  }
  t.after(() => server.close())
  return { add, url: server.url, opened: () => opened, served: () => served, open: () => open }
}

/** Creates a watch with one watcher, as `createWatch` does. */
export async function startWatch(t: TestContext, options: Options) {
  const watch = await createWatch(t, options)
  return { ...watch, ...watch.add() }
}
