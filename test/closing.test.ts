import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { harness } from './support/app.ts'

const h = harness()

const VERIFY =
  'POST /api/v1/auth/verify-otp HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{'

test('the app closes within 5 s despite silent clients, half-sent requests and a body that never ends', async () => {
  await h.app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = h.app.server.address() as { port: number }
  const arrived = new Promise<void>(resolve => {
    let count = 0
    h.app.server.on('request', () => {
      count += 1
      if (count === 2) resolve()
    })
  })
  const open = async (bytes: string) => {
    const socket = connect(port, '127.0.0.1')
    const connection = { socket, answer: '', closed: once(socket, 'close').then(() => performance.now()) }
    socket.setEncoding('utf8').on('data', chunk => {
      connection.answer += chunk
    })
    await Promise.all([once(socket, 'connect'), once(h.app.server, 'connection')])
    socket.write(bytes)
    return connection
  }
  const silent = await open('')
  const halfSent = await open('GET /hea')
  const late = await open(VERIFY)
  const endless = await open(VERIFY)
  await arrived

  const start = performance.now()
  const closed = h.app.close()
  for (const { closed } of [silent, halfSent]) assert.ok((await closed) - start < 1_000)
  late.socket.write('}')
  // The app received the headers of the request on the connection `late` before `h.app.close()`. So the app answers
  // when the body is complete, and then closes the connection.
  assert.ok((await late.closed) - start < 3_000)
  assert.match(late.answer, /^HTTP\/1.1 422 /)
  await closed
  assert.equal(endless.answer, '')
  const took = performance.now() - start
  assert.ok(took > 4_900 && took < 7_000, `${took}`)
})
