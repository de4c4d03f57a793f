import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { within } from './within.ts'

export type Exchanged = { status: number; text: string }

/**
 * Sends requests one after the other on one connection, until the server closes it; then on a new one. Bytes beyond an answer
 * fail this exchange or the next one. So a test that ends with an expected answer has seen exactly one answer to each request.
 */
export function httpConnection(port: number) {
  let connection: Awaited<ReturnType<typeof open>> | undefined
  return {
    async exchange(method: string, path: string, headers: Record<string, string>, body: Buffer): Promise<Exchanged> {
      connection ??= await open(port)
      assert.equal(connection.rest(), '', 'a second answer to the request before')
      const lines = Object.entries({ host: 'x', ...headers, 'content-length': body.length })
      const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
      connection.socket.write(Buffer.concat([Buffer.from(`${method} ${path} HTTP/1.1\r\n${head}\r\n`), body]))
      const answer = await connection.take(endOfHead)
      const length = Number(/^content-length: (\d+)\r$/im.exec(answer)![1])
      const text = await connection.take(received => (received.length < length ? undefined : length))
      if (/^connection: close\r$/im.test(answer)) {
        await connection.closed
        assert.equal(connection.rest(), '', 'a second answer')
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
  let wake = () => {}
  socket.on('data', chunk => {
    received = Buffer.concat([received, chunk])
    wake()
  })
  // The server may close while a body that is too large is still being sent.
  socket.on('error', () => {})
  const closed = new Promise<void>(resolve => {
    socket.on('close', () => {
      resolve()
      wake()
    })
  })
  return {
    socket,
    closed,
    rest: () => received.toString('utf8'),
    /** Takes received bytes as text. @param measure returns how many to take, or undefined to wait for more */
    async take(measure: (received: Buffer) => number | undefined): Promise<string> {
      let length = measure(received)
      while (length === undefined) {
        if (socket.destroyed) throw new Error(`no answer, but ${JSON.stringify(received.toString('utf8'))}`)
        await within(
          'an answer',
          new Promise<void>(resolve => {
            wake = resolve
          }),
        )
        length = measure(received)
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
