import assert from 'node:assert/strict'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Courtside, CourtsideError, type CourtsideOptions, memoryStorage, type TokenStorage } from 'courtside-client'
import { waitUntil } from './wait-until.ts'

/** A request that a client has sent. */
export type Sent = { method: string; path: string; token: string | undefined }

/** Creates a client and records its requests, oldest first. */
export function recordRequests(options: CourtsideOptions): {
  client: Courtside
  sent: Sent[]
  refreshes: () => number
} {
  const sent: Sent[] = []
  const send = options.fetch ?? fetch
  const client = new Courtside({
    ...options,
    fetch: (input, init) => {
      const token = new Headers(init?.headers).get('authorization')?.slice('Bearer '.length)
      sent.push({ method: init?.method ?? 'GET', path: new URL(String(input)).pathname, token })
      return send(input, init)
    },
  })
  return { client, sent, refreshes: () => sent.filter(({ path }) => path.endsWith('/refresh')).length }
}

/**
 * Creates a storage that several simulated browser tabs share. Each call of the returned function adds a tab, and
 * returns the storage for this tab. A change by one tab calls the listeners of all other tabs.
 */
export function createTabs(): () => TokenStorage {
  const shared = memoryStorage()
  const views: { storage: TokenStorage; listeners: Set<() => void> }[] = []
  return () => {
    const listeners = new Set<() => void>()
    const storage: TokenStorage = {
      get: key => shared.get(key),
      set(key, value) {
        shared.set(key, value)
        for (const view of views) if (view.storage !== storage) for (const notify of view.listeners) notify()
      },
      onChange(listener) {
        listeners.add(listener)
        return () => listeners.delete(listener)
      },
    }
    views.push({ storage, listeners })
    return storage
  }
}

/** Starts a server on a free port. @param listener the function that answers the requests */
export async function startServer(listener: RequestListener): Promise<{ url: string; close(): Promise<void> }> {
  const server = createServer(listener)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** Creates a queue. Each call of `next` waits for the next item, and returns it. */
export function createQueue<T>(): { push: (item: T) => void; next(): Promise<T>; items: T[] } {
  const items: T[] = []
  let taken = 0
  return {
    items,
    push(item) {
      items.push(item)
    },
    async next() {
      await waitUntil(() => items.length > taken)
      return items[taken++]!
    },
  }
}

/** Returns a function for `assert.rejects` that accepts a `CourtsideError` with the given status and error code. */
export function failsWith(status: number, code: string) {
  return (error: unknown) => {
    assert.ok(error instanceof CourtsideError)
    assert.deepEqual([error.status, error.code], [status, code])
    return true
  }
}
