import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { ConnectionLimits } from '../src/http/connections.ts'
import { openEventStream } from '../src/http/event-stream.ts'
import { type AnotherApp, anotherApp, harness, INTAKE_KEY } from './support/app.ts'
import { listen, openStream } from './support/event-stream.ts'
import { makeUser } from './support/factories.ts'
import { exchangeRaw, openRaw, type RawConnection } from './support/raw-connection.ts'
import { waitUntil } from './support/wait-until.ts'

const h = harness()

/**
 * The largest file that everyone can get. It is larger than the buffers of a TCP connection that the client does not
 * read.
 */
const LARGE = 'GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: x\r\n\r\n'
const GET = 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'
const LAST = 'GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'

async function withLimits(
  limits: Partial<ConnectionLimits>,
  work: (address: string, port: number, other: AnotherApp) => Promise<void>,
): Promise<void> {
  const other = await anotherApp(h, {}, { limits })
  try {
    const address = await listen(other.app)
    await work(address, Number(new URL(address).port), other)
  } finally {
    await other.close()
  }
}

const countOpen = ({ app }: AnotherApp) =>
  new Promise<number>(resolve => app.server.getConnections((_, open) => resolve(open)))

describe('slow readers', { timeout: 180_000 }, () => {
  test('within 60 s, clients that do not read lose their connections, but a stream that is read stays open', async () => {
    await withLimits({}, async (address, port, other) => {
      const { token } = await makeUser(h)
      const stream = await openStream(address, token)
      assert.equal((await stream.next()).event, 'sync')
      const silent: RawConnection[] = []
      for (let count = 0; count < 20; count += 1) {
        const connection = await openRaw(port)
        connection.socket.pause()
        connection.socket.write(LARGE.repeat(20))
        silent.push(connection)
      }
      await delay(1_000)
      assert.equal(await countOpen(other), silent.length + 1)
      await delay(60_000)
      assert.equal(await countOpen(other), 1)
      // Two heartbeats have arrived. Without heartbeats, the service would have closed the stream too.
      for (let count = 0; count < 3; count += 1) await stream.heartbeat()
      stream.close()
      for (const { socket } of silent) socket.destroy()
    })
  })

  test('a client that reads an answer a little at a time loses its connection after the time for one answer', async () => {
    await withLimits({ answerMs: 1_000, checkMs: 50 }, async (_address, port, other) => {
      const { socket } = await openRaw(port)
      socket.pause()
      socket.write(LARGE.repeat(20))
      const start = performance.now()
      while ((await countOpen(other)) > 0) {
        assert.ok(performance.now() - start < 60_000)
        socket.read(4_096)
        await delay(20)
      }
      socket.destroy()
    })
  })

  test('a client that pipelines requests must read all answers within the time for one answer', async () => {
    await withLimits({ answerMs: 2_000, checkMs: 50 }, async (_address, port, other) => {
      const { socket } = await openRaw(port)
      socket.removeAllListeners('data')
      socket.pause()
      socket.write(LARGE.repeat(20))
      let received = 0
      const start = performance.now()
      // The client reads each answer within half a second.
      while ((await countOpen(other)) > 0) {
        assert.ok(performance.now() - start < 60_000)
        for (let part = 0; part < 16; part += 1) received += socket.read(4_096)?.length ?? 0
        await delay(20)
      }
      const { text } = await other.call('GET', '/docs/swagger-ui-bundle.js')
      assert.ok(received < 15 * text.length, `${received} bytes`)
      socket.destroy()
    })
  })

  test('a client that does not close its side after the last answer loses its connection within seconds', async () => {
    await withLimits({}, async (_address, port, other) => {
      const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
      socket.resume()
      socket.write(LAST)
      await once(socket, 'end')
      // An idle connection would stay open for 28 s.
      await waitUntil(async () => (await countOpen(other)) === 0, 15_000)
      socket.destroy()
    })
  })

  test('a stream that the service has ended closes within seconds if its client does not read', async () => {
    const other = await anotherApp(h)
    other.app.get('/ended', { config: { access: 'public' }, schema: { hide: true } }, async (_request, reply) => {
      const until = new Date(h.clock.now().getTime() + 3_600_000)
      const stream = openEventStream(reply, { until, now: h.clock.now, ended: () => {} })
      stream.write(`:${'x'.repeat(50_000_000)}\n`)
      stream.end()
    })
    const { socket } = await openRaw(Number(new URL(await listen(other.app)).port))
    socket.pause()
    socket.write('GET /ended HTTP/1.1\r\nHost: x\r\n\r\n')
    await waitUntil(async () => (await countOpen(other)) === 1)
    // A client has 30 s to read an answer that is no stream.
    await waitUntil(async () => (await countOpen(other)) === 0, 20_000)
    socket.destroy()
    await other.close()
  })

  test('a client may wait for its answer longer than an idle connection stays open', async () => {
    await withLimits({ idleMs: 200 }, async (_address, port) => {
      const user = await makeUser(h)
      await h.database.sql
        .begin(async tx => {
          await tx`select id from session where user_id = ${user.id} for update`
          const connection = await openRaw(
            port,
            `POST /api/v1/auth/logout HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${user.token}\r\n\r\n`,
          )
          await delay(1_000)
          assert.equal(connection.received(), '')
          void connection.seen(/ 200 /).then(() => connection.socket.destroy())
          return connection
        })
        .then(connection => connection.seen(/ 200 /))
    })
  })
})

describe('the limits of a process', { timeout: 60_000 }, () => {
  test('a process accepts no more than the maximum number of connections, and logs this at most once a minute', async () => {
    await withLimits({ connections: 3 }, async (_address, port, other) => {
      const open: RawConnection[] = []
      for (let count = 0; count < 3; count += 1) {
        const connection = await openRaw(port, GET)
        await connection.seen(/ 200 /)
        open.push(connection)
      }
      const countWarnings = () => h.logged.filter(line => /too many connections/.test(String(line.msg))).length
      for (let count = 0; count < 5; count += 1) assert.deepEqual((await exchangeRaw(port, GET)).statuses, [])
      assert.equal(countWarnings(), 1)
      open[0]!.socket.destroy()
      await waitUntil(async () => (await countOpen(other)) < 3)
      assert.deepEqual((await exchangeRaw(port, LAST)).statuses, [200])
      for (const { socket } of open) socket.destroy()
    })
  })

  test('a process opens no more than the maximum number of streams, and answers 503 with Retry-After beyond', async () => {
    await withLimits({ streams: 2 }, async (address, _port, other) => {
      const users = [await makeUser(h), await makeUser(h), await makeUser(h)]
      const first = await openStream(address, users[0]!.token)
      await openStream(address, users[1]!.token)
      const third = await openStream(address, users[2]!.token)
      assert.deepEqual([third.response.statusCode, third.response.headers['retry-after']], [503, '30'])
      assert.equal(
        (await other.call('GET', '/api/v1/notifications/unread-count', { token: users[2]!.token })).status,
        200,
      )
      first.close()
      await waitUntil(async () => {
        const again = await openStream(address, users[2]!.token)
        return again.response.statusCode === 200
      })
    })
  })
})

describe('bodies that the service does not read', { timeout: 60_000 }, () => {
  const post = (path: string, rest: string) => `POST ${path} HTTP/1.1\r\nHost: x\r\n${rest}\r\n\r\n`

  for (const [path, status] of [
    ['/api/v1/auth/logout', 401],
    ['/api/v1/game-levels', 405],
    ['/nowhere', 404],
    ['/internal/v1/events', 401],
    ['/api/v1/auth/verify-otp', 413],
    ['/%zz', 404],
  ] as const) {
    test(`POST ${path} with a body of 10 GB gets a ${status} immediately, and the connection closes`, async () => {
      await withLimits({}, async (_address, port) => {
        const connection = await openRaw(
          port,
          post(path, 'Content-Type: application/json\r\nContent-Length: 10000000000'),
        )
        let sent = 0
        const chunk = Buffer.alloc(64 * 1024, 'x')
        while (!connection.socket.destroyed && connection.socket.writable && sent < 200_000_000) {
          sent += chunk.length
          if (!connection.socket.write(chunk)) {
            await Promise.race([once(connection.socket, 'drain'), once(connection.socket, 'close')]).catch(() => {})
          }
        }
        assert.deepEqual(connection.statuses(), [status])
        assert.match(connection.received(), /\r\nconnection: close\r\n/i)
        // The buffers of the operating system also take some bytes.
        assert.ok(sent < 50_000_000, `${sent}`)
      })
    })
  }

  test('a connection closes after a MiB of a body that nobody reads, without waiting for the client', async () => {
    await withLimits({}, async (_address, port, other) => {
      const sockets: Socket[] = []
      other.app.server.on('connection', socket => sockets.push(socket))
      const connection = await openRaw(port, post('/nowhere', 'Content-Length: 10000000000'))
      // The client goes on sending after the service has closed its side.
      connection.socket.removeAllListeners('end')
      await connection.seen(/ 404 /)
      const chunk = Buffer.alloc(64 * 1024, 'x')
      while (connection.socket.writable) {
        if (!connection.socket.write(chunk)) {
          await Promise.race([once(connection.socket, 'drain'), once(connection.socket, 'close')]).catch(() => {})
        }
      }
      assert.ok(sockets[0]!.bytesRead < 4_000_000, `${sockets[0]!.bytesRead} bytes`)
    })
  })

  test('a client that sends its whole body before it reads still gets the answer', async () => {
    await withLimits({}, async (_address, port) => {
      for (let round = 0; round < 20; round += 1) {
        for (const path of ['/api/v1/auth/verify-otp', '/api/v1/auth/logout']) {
          const connection = await openRaw(port)
          connection.socket.pause()
          connection.socket.write(post(path, 'Content-Type: application/json\r\nContent-Length: 1000000'))
          await new Promise(resolve => connection.socket.write(Buffer.alloc(1_000_000, 'x'), resolve))
          connection.socket.resume()
          await connection.closed()
          assert.deepEqual(connection.statuses(), [path.endsWith('otp') ? 413 : 401])
        }
      }
    })
  })

  test('a connection stays open after an early answer if at most 64 KiB are unread', async () => {
    await withLimits({}, async (_address, port) => {
      const connection = await openRaw(port, post('/api/v1/auth/logout', 'Content-Length: 65536'))
      await connection.seen(/ 401 /)
      connection.socket.write('x'.repeat(65_536) + LAST)
      await connection.closed()
      assert.deepEqual(connection.statuses(), [401, 200])
    })
  })

  test('a connection closes after an early answer if the rest of a chunked body is unread', async () => {
    await withLimits({}, async (_address, port) => {
      const { statuses, text } = await exchangeRaw(
        port,
        `${post('/api/v1/auth/logout', 'Transfer-Encoding: chunked')}1\r\nx\r\n`,
        `${`4000\r\n${'x'.repeat(0x4000)}\r\n`.repeat(20)}0\r\n\r\n${GET}`,
      )
      assert.deepEqual(statuses, [401])
      assert.match(text, /\r\nconnection: close\r\n/i)
      const complete = `${post('/api/v1/auth/logout', 'Transfer-Encoding: chunked')}0\r\n\r\n${LAST}`
      assert.deepEqual((await exchangeRaw(port, complete)).statuses, [401, 200])
    })
  })

  test('a large batch that the intake accepts does not close the connection', async () => {
    await withLimits({}, async (_address, port) => {
      const body = `[]${' '.repeat(200_000)}`
      const head = `Authorization: Bearer ${INTAKE_KEY}\r\nContent-Type: application/cloudevents-batch+json\r\nContent-Length: ${body.length}`
      const { statuses } = await exchangeRaw(port, post('/internal/v1/events', head), body + LAST)
      assert.deepEqual(statuses, [200, 200])
    })
  })
})
