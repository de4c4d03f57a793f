import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { waitUntil } from './wait-until.ts'

export type Exchanged = { status: number; text: string }

/**
 * Returns a client that sends requests one after the other on one connection. If the server closes the connection, the
 * next request opens a new connection. Each call of `exchange` checks that the server sent nothing after the previous
 * answer. So if the last call of a test succeeds, each earlier request got exactly one answer.
 */
export function httpConnection(port: number) {
  let connection: Awaited<ReturnType<typeof open>> | undefined
  return {
    async exchange(method: string, path: string, headers: Record<string, string>, body: Buffer): Promise<Exchanged> {
      connection ??= await open(port)
      assert.equal(connection.rest(), '', 'the previous request got a second answer')
      const lines = Object.entries({ host: 'x', ...headers, 'content-length': body.length })
      const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
      connection.socket.write(Buffer.concat([Buffer.from(`${method} ${path} HTTP/1.1\r\n${head}\r\n`), body]))
      const answer = await connection.take(endOfHead)
      const length = Number(/^content-length: (\d+)\r$/im.exec(answer)![1])
      const text = await connection.take(received => (received.length < length ? undefined : length))
      if (/^connection: close\r$/im.test(answer)) {
        await connection.closed
        assert.equal(connection.rest(), '', 'the request got a second answer')
        connection = undefined
      }
      return { status: Number(answer.split(' ', 2)[1]), text }
    },
    close() {
      connection?.socket.destroy()
    },
  }
}

async function open(port: number) {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  let received = Buffer.alloc(0)
  socket.on('data', chunk => {
    received = Buffer.concat([received, chunk])
  })
  // If a body is too large, the server may close the connection before the client has sent the whole body.
  socket.on('error', () => {})
  const closed = new Promise<void>(resolve => {
    socket.on('close', () => resolve())
  })
  return {
    socket,
    closed,
    rest: () => received.toString('utf8'),
    /**
     * Removes bytes from the front of the received bytes, and returns them as text.
     * @param measure returns the number of bytes to remove, or undefined to wait for more bytes
     */
    async take(measure: (received: Buffer) => number | undefined): Promise<string> {
      await waitUntil(() => socket.destroyed || measure(received) !== undefined)
      const length = measure(received)
      if (length === undefined) {
        throw new Error(`the connection closed within an answer: ${JSON.stringify(received.toString('utf8'))}`)
      }
      const taken = received.subarray(0, length).toString('utf8')
      received = received.subarray(length)
      return taken
    },
  }
}

function endOfHead(received: Buffer): number | undefined {
  const at = received.indexOf('\r\n\r\n')
  return at < 0 ? undefined : at + 4
}
