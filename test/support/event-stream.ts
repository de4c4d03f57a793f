import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import type { App } from '../../src/http/route.ts'
import { within } from './within.ts'

export type Event = { event: string; data: any }

/** Lets an app listen on a free port. @returns its address */
export async function listen(app: App): Promise<string> {
  return app.listen({ host: '127.0.0.1', port: 0 })
}

/** Opens a client of the stream on a new connection. */
export async function openStream(address: string, token: string, headers: Record<string, string> = {}) {
  const sent = request(`${address}/api/v1/notifications/stream`, {
    agent: false,
    headers: { authorization: `Bearer ${token}`, ...headers },
  }).end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  const parts: string[] = []
  let wake = () => {}
  let rest = ''
  response.setEncoding('utf8')
  response.on('data', (chunk: string) => {
    const blocks = (rest + chunk).split('\n\n')
    rest = blocks.pop()!
    parts.push(...blocks)
    wake()
  })
  response.on('error', () => {})
  response.on('close', () => wake())

  /** Takes the first wanted part, and drops the parts before it. */
  async function take(wanted: (part: string) => boolean): Promise<string> {
    for (;;) {
      const at = parts.findIndex(wanted)
      if (at >= 0) return parts.splice(0, at + 1).at(-1)!
      assert.ok(!response.closed, `the stream has ended; it had sent: ${parts.join(' | ')}`)
      await within(
        'an event of the stream',
        new Promise<void>(resolve => {
          wake = resolve
        }),
      )
    }
  }

  return {
    response,
    /** Returns the next event, and skips heartbeats. */
    async next(): Promise<Event> {
      const lines = (await take(part => part !== ':')).split('\n')
      assert.deepEqual(
        lines.map(line => line.split(': ', 1)[0]),
        ['event', 'data'],
      )
      return { event: lines[0]!.slice('event: '.length), data: JSON.parse(lines[1]!.slice('data: '.length)) }
    },
    heartbeat: () => take(part => part === ':'),
    /** Waits for the end of the stream. @returns whether the answer is complete */
    async ended(): Promise<boolean> {
      if (!response.closed) await within('the end of the stream', once(response, 'close'))
      return response.complete
    },
    close: () => sent.destroy(),
  }
}

export type ClientStream = Awaited<ReturnType<typeof openStream>>
