import assert from 'node:assert/strict'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Courtside, CourtsideError, type CourtsideOptions, memoryStorage, type TokenStorage } from 'courtside-client'
import { within } from './within.ts'

/** What a client has sent, oldest first. */
export type Sent = { method: string; path: string; token: string | undefined }

/** A client whose requests are noted. */
export function noted(options: CourtsideOptions): { client: Courtside; sent: Sent[]; refreshes: () => number } {
  const sent: Sent[] = []
  const through = options.fetch ?? fetch
  const client = new Courtside({
    ...options,
    fetch: (input, init) => {
      const token = new Headers(init?.headers).get('authorization')?.slice('Bearer '.length)
      sent.push({ method: init?.method ?? 'GET', path: new URL(String(input)).pathname, token })
      return through(input, init)
    },
  })
  return { client, sent, refreshes: () => sent.filter(({ path }) => path.endsWith('/refresh')).length }
}

/** A storage as the tabs of a browser have it: each a view of its own, told of what the others change. */
export function tabs(): () => TokenStorage {
  const shared = memoryStorage()
  const views: { storage: TokenStorage; listeners: Set<() => void> }[] = []
  return () => {
    const listeners = new Set<() => void>()
    const storage: TokenStorage = {
      get: key => shared.get(key),
      set(key, value) {
        shared.set(key, value)
        for (const view of views) if (view.storage !== storage) for (const tell of view.listeners) tell()
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

/** A server that misbehaves as told, on a port of its own. */
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

/** What is said to it, to be waited for one by one. */
export function ear<T>(): { hear: (said: T) => void; next(): Promise<T>; heard: T[] } {
  const heard: T[] = []
  let taken = 0
  let arrived = () => {}
  return {
    heard,
    hear(said) {
      heard.push(said)
      arrived()
    },
    async next() {
      while (heard.length <= taken) {
        await within(
          'a call',
          new Promise<void>(resolve => {
            arrived = resolve
          }),
        )
      }
      return heard[taken++]!
    },
  }
}

/** For `assert.rejects`: that it is the client's error, with this status and code. */
export function failsWith(status: number, code: string) {
  return (error: unknown) => {
    assert.ok(error instanceof CourtsideError)
    assert.deepEqual([error.status, error.code], [status, code])
    return true
  }
}
