import assert from 'node:assert/strict'
import { after, afterEach, before } from 'node:test'
import { type AnotherApp, anotherApp, type Harness } from './app.ts'
import { type ClientStream, listen, openStream } from './event-stream.ts'

export const PATH = '/api/v1/notifications'

/**
 * Makes the app of the harness listen, and starts a second app, which represents a second process. Call this function
 * at the top of a suite. After each test, a hook closes all streams that the test opened.
 */
export function twoProcesses(h: Harness) {
  const second = {} as AnotherApp
  const at = { here: '', there: '' }
  const opened: ClientStream[] = []

  async function startSecond(): Promise<void> {
    Object.assign(second, await anotherApp(h))
    at.there = await listen(second.app)
  }

  async function open(address: string, token: string, headers?: Record<string, string>): Promise<ClientStream> {
    const stream = await openStream(address, token, headers)
    opened.push(stream)
    return stream
  }

  /** Opens a stream and waits for its first event, the `sync`. */
  async function openSynced(address: string, token: string): Promise<ClientStream> {
    const stream = await open(address, token)
    assert.equal((await stream.next()).event, 'sync')
    return stream
  }

  before(async () => {
    at.here = await listen(h.app)
    await startSecond()
  })
  afterEach(() => {
    for (const stream of opened.splice(0)) stream.close()
  })
  after(() => second.close())
  return { at, second, startSecond, open, openSynced }
}
