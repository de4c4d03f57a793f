import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import type { App } from '../../src/http/route.ts'
import { waitUntil } from './wait-until.ts'

export type Event = { event: string; data: any }

/** Makes an app listen on a free port. @returns the address of the app */
export async function listen(app: App): Promise<string> {
  return app.listen({ host: '127.0.0.1', port: 0 })
}

/** Opens a stream of notifications on a new connection. */
export async function openStream(address: string, token: string, headers: Record<string, string> = {}) {
  const sent = request(`${address}/api/v1/notifications/stream`, {
    agent: false,
    headers: { authorization: `Bearer ${token}`, ...headers },
  }).end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  const parts: string[] = []
  let rest = ''
  response.setEncoding('utf8')
  response.on('data', (chunk: string) => {
    // A heartbeat is a comment line without a blank line after it.
    const blocks = (rest + chunk).replaceAll(/(?<=^|\n):\n/g, ':\n\n').split('\n\n')
    rest = blocks.pop()!
    parts.push(...blocks)
  })
  response.on('error', () => {})

  /**
   * Waits for a part of the stream, an event or a heartbeat, that `isWanted` accepts. Drops all earlier parts.
   * @returns the accepted part
   */
  async function take(isWanted: (part: string) => boolean): Promise<string> {
    await waitUntil(() => response.closed || parts.some(isWanted))
    const at = parts.findIndex(isWanted)
    assert.ok(at >= 0, `the stream ended without the awaited part, after: ${parts.join(' | ')}`)
    return parts.splice(0, at + 1).at(-1)!
  }

  return {
    response,
    /** Waits for the next event, and returns it. Heartbeats are skipped. */
    async next(): Promise<Event> {
      const lines = (await take(part => part !== ':')).split('\n')
      assert.deepEqual(
        lines.map(line => line.split(': ', 1)[0]),
        ['event', 'data'],
      )
      return { event: lines[0]!.slice('event: '.length), data: JSON.parse(lines[1]!.slice('data: '.length)) }
    },
    heartbeat: () => take(part => part === ':'),
    /** Waits for the end of the stream. @returns whether the server completed the answer */
    async ended(): Promise<boolean> {
      await waitUntil(() => response.closed)
      return response.complete
    },
    close: () => sent.destroy(),
  }
}

export type ClientStream = Awaited<ReturnType<typeof openStream>>
