import assert from 'node:assert/strict'
import { once } from 'node:events'
import { before, describe, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { anotherApp, harness } from './support/app.ts'
import { listen } from './support/event-stream.ts'
import { makeNotifications, makeUser } from './support/factories.ts'
import { exchangeRaw, openRaw } from './support/raw-connection.ts'
import { signUp } from './support/scenario.ts'

const h = harness()

const GET = 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'
const LAST = 'GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
const GARBAGE = '\x16\x03\x01\x02 not HTTP\r\n\r\n'

describe('framing', { timeout: 120_000 }, () => {
  let port: number
  before(async () => {
    port = Number(new URL(await listen(h.app)).port)
  })

  const streamRequest = (token: string) =>
    `GET /api/v1/notifications/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`

  describe('each request gets one answer, and nothing is written into an answer', () => {
    test('garbage behind the request of a stream ends the stream, and writes no other bytes into it', async () => {
      const user = await makeUser(h)
      const connection = await openRaw(port, streamRequest(user.token))
      await connection.seen(/event: sync/)
      connection.socket.write(GARBAGE)
      await connection.closed()
      assert.deepEqual(connection.statuses(), [200])
      // The stream ends with the last chunk, as a chunked body must.
      assert.match(connection.received(), /\r\n0\r\n\r\n$/)
    })

    const chunked = (path: string) =>
      `POST ${path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n`
    test('a broken chunked body that follows an answer gets no second answer', async () => {
      const { statuses } = await exchangeRaw(port, chunked('/api/v1/game-levels'), 'ZZ\r\n')
      assert.deepEqual(statuses, [405])
    })

    test('a broken chunked body gets one answer, whether the error arrives before or after the answer', async () => {
      for (const path of ['/api/v1/game-levels', '/api/v1/auth/logout', '/api/v1/auth/verify-otp', '/nowhere']) {
        for (const parts of [[`${chunked(path)}ZZ\r\n`], [chunked(path), 'ZZ\r\n', GARBAGE]]) {
          const { statuses } = await exchangeRaw(port, ...parts)
          assert.equal(statuses.length, 1, `${path} ${statuses}`)
          assert.ok(statuses[0]! >= 400 && statuses[0]! < 500)
        }
      }
    })

    for (const [path, status] of [
      ['/api/v1/auth/logout', 401],
      ['/api/v1/auth/verify-otp', 400],
    ] as const) {
      test(`POST ${path} with Content-Length 100, one byte and FIN gets exactly one answer, a ${status}`, async () => {
        const connection = await openRaw(port)
        connection.socket.write(
          `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{`,
        )
        if (status === 401) await connection.seen(/ 401 /)
        connection.socket.end()
        await connection.closed()
        assert.deepEqual(connection.statuses(), [status])
      })
    }

    test('garbage behind complete requests gets its 400 after their answers', async () => {
      const { statuses, text } = await exchangeRaw(port, GET + GET + GARBAGE)
      assert.deepEqual(statuses, [200, 200, 400])
      assert.match(text, /"code":"validation_failed"}$/)
    })

    test('a request behind Connection: close gets no answer and has no effect', async () => {
      const { token } = await signUp(h)
      const logout = `POST /api/v1/auth/logout HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`
      for (const rest of [logout, GARBAGE]) {
        const { statuses } = await exchangeRaw(port, LAST + rest)
        assert.deepEqual(statuses, [200])
      }
      assert.equal((await h.call('GET', '/api/v1/auth/me', { token })).status, 200)
    })

    test('20 pipelined requests get their answers in order', async () => {
      const urls = Array.from({ length: 19 }, (_, at) => (at % 2 ? '/healthz' : '/nowhere'))
      const { statuses } = await exchangeRaw(
        port,
        urls.map(url => `GET ${url} HTTP/1.1\r\nHost: x\r\n\r\n`).join('') + LAST,
      )
      assert.deepEqual(statuses, [...urls.map(url => (url === '/healthz' ? 200 : 404)), 200])
    })

    test('the answers do not depend on how TCP splits the bytes', async () => {
      const head = 'HTTP/1.1\r\nHost: x\r\n'
      const bytes =
        `GET /nowhere ${head}\r\nPOST /api/v1/game-levels ${head}Content-Length: 3\r\n\r\nabc${GET}` +
        `POST /api/v1/auth/verify-otp ${head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n${GET}`
      for (let at = 0; at < bytes.length; at += 5) {
        const connection = await openRaw(port, bytes.slice(0, at))
        await setImmediate()
        for (const byte of bytes.slice(at, at + 20)) {
          connection.socket.write(byte)
          await setImmediate()
        }
        connection.socket.write(bytes.slice(at + 20))
        await connection.closed()
        assert.deepEqual(connection.statuses(), [404, 405, 200, 422, 400], `split at ${at}`)
      }
    })

    test('a request behind a request with Upgrade gets no answer, and the connection closes', async () => {
      const upgrade = 'GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n'
      const post = 'POST /api/v1/game-levels HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n'
      for (const parts of [[upgrade], [upgrade + GET], [upgrade + GET, GET], [upgrade + post, GET]]) {
        const { statuses, text } = await exchangeRaw(port, ...parts)
        assert.deepEqual(statuses, [200])
        assert.match(text, /\r\nconnection: close\r\n/i)
      }
    })

    test('pipelined requests run one after the other', async () => {
      const user = await makeUser(h)
      const [id] = await makeNotifications(h, user.id, 1)
      const head = `HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${user.token}\r\n`
      const { text } = await exchangeRaw(
        port,
        `POST /api/v1/notifications/${id}/read ${head}\r\nGET /api/v1/notifications/unread-count ${head}Connection: close\r\n\r\n`,
      )
      assert.match(text, /"unread_count":0/)
    })

    test('a client that sends more requests than it may pipeline loses its connection', async () => {
      const { statuses } = await exchangeRaw(port, GET.repeat(200))
      assert.ok(statuses.length < 200)
      assert.equal((await exchangeRaw(port, LAST)).statuses.length, 1)
    })

    test('a client that continues to send requests after the last answer loses its connection', async () => {
      const connection = await openRaw(port, 'GET /healthz HTTP/1.1\r\n\r\n')
      connection.socket.removeAllListeners('end')
      let sent = 0
      while (!connection.socket.destroyed) {
        connection.socket.write(GET)
        sent += 1
        await setImmediate()
      }
      assert.deepEqual(connection.statuses(), [400])
      assert.ok(sent < 10_000, `${sent}`)
    })

    test('a request that arrives too slowly gets a 408, unless it was answered before', async () => {
      const other = await anotherApp(h, {}, { limits: { headMs: 100, requestMs: 500, checkMs: 50 } })
      try {
        const otherPort = Number(new URL(await listen(other.app)).port)
        const slow = (path: string) => `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{`
        assert.deepEqual((await exchangeRaw(otherPort, slow('/api/v1/auth/logout'))).statuses, [401])
        assert.deepEqual((await exchangeRaw(otherPort, slow('/api/v1/auth/verify-otp'))).statuses, [408])
        assert.deepEqual((await exchangeRaw(otherPort, 'GET /hea')).statuses, [408])
      } finally {
        await other.close()
      }
    })
  })

  describe('a client that closes its sending side', () => {
    test('a client that closes its sending side gets the answer to its request', async () => {
      for (const bytes of [GET, LAST, GET + GET]) {
        const connection = await openRaw(port)
        connection.socket.end(bytes)
        await connection.closed()
        assert.deepEqual(connection.statuses(), [200, 200].slice(0, bytes.split('GET').length - 1))
      }
    })

    test('a client that closes its sending side can sign out', async () => {
      const { token } = await signUp(h)
      const connection = await openRaw(port)
      connection.socket.end(`POST /api/v1/auth/logout HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`)
      await connection.closed()
      assert.deepEqual(connection.statuses(), [200])
      assert.equal((await h.call('GET', '/api/v1/auth/me', { token })).status, 401)
    })

    test('a client that closes its sending side gets a complete stream that ends immediately', async () => {
      const { token } = await makeUser(h)
      const connection = await openRaw(port)
      connection.socket.end(streamRequest(token))
      await connection.closed()
      assert.match(connection.received(), /^HTTP\/1\.1 200 .*\r\n0\r\n\r\n$/s)
    })

    test('a client that closes its sending side leaves no open socket behind', async () => {
      const count = () => new Promise<number>(resolve => h.app.server.getConnections((_, open) => resolve(open)))
      for (const bytes of ['', GET, 'GET /hea', GARBAGE, LAST]) {
        const connection = await openRaw(port)
        const [before] = [await count()]
        connection.socket.end(bytes)
        await once(connection.socket, 'close')
        assert.ok((await count()) <= before, bytes)
      }
    })
  })

  describe('the head of a request', () => {
    const heads: [string, string, number][] = [
      ['no Host', 'GET /healthz HTTP/1.1\r\n', 400],
      ['two Hosts', 'GET /healthz HTTP/1.1\r\nHost: x\r\nHost: x\r\n', 400],
      ['two Hosts in HTTP/1.0', 'GET /healthz HTTP/1.0\r\nHost: x\r\nHost: y\r\n', 400],
      ['no Host in HTTP/1.0', 'GET /healthz HTTP/1.0\r\n', 200],
      ['the method PLAY', 'PLAY / RTSP/1.0\r\nHost: x\r\n', 400],
      ['the method SETUP', 'SETUP /healthz RTSP/1.0\r\nHost: x\r\n', 400],
      ['the coding gzip', 'POST /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n', 400],
      ['a chunked body in HTTP/1.0', 'POST /healthz HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n', 400],
      ['a fragment', 'GET /healthz#x HTTP/1.1\r\nHost: x\r\n', 400],
      ['a fragment in a whole URL', 'DELETE http://x/api/v1/game-levels#x HTTP/1.1\r\nHost: x\r\n', 400],
      ['a whole URL', 'GET HTTP://y/healthz?x=1 HTTP/1.1\r\nHost: x\r\n', 200],
      ['the method CONNECT', 'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n', 405],
    ]
    for (const host of [
      'a b',
      'u@a',
      'a/b',
      'a, b',
      'a:b',
      '[::1',
      '[::g]',
      '[fe80::1%25eth0]',
      'caf\xe9',
      '%zz',
      'a?b',
    ]) {
      heads.push([`the Host ${host}`, `GET /healthz HTTP/1.1\r\nHost: ${host}\r\n`, 400])
    }
    for (const host of [
      'x',
      'x:',
      'x:80',
      '127.0.0.1:3000',
      '[::1]',
      '[::1]:80',
      'a_b-c.example.',
      'a%20b',
      '',
      'X,Y',
    ]) {
      heads.push([`the Host ${JSON.stringify(host)}`, `GET /healthz HTTP/1.1\r\nHost: ${host}\r\n`, 200])
    }
    for (const [title, head, status] of heads) {
      test(`a request with ${title} gets a ${status}`, async () => {
        const { statuses, text } = await exchangeRaw(port, `${head}Connection: close\r\n\r\n`)
        assert.deepEqual(statuses, [status])
        if (status === 200) return
        const [start, body] = text.split('\r\n\r\n')
        assert.deepEqual(JSON.parse(body!), {
          message: status === 400 ? 'Bad Request' : 'Method Not Allowed',
          code: status === 400 ? 'validation_failed' : 'method_not_allowed',
        })
        assert.match(start!, /\r\nconnection: close\r\n/)
        assert.match(start!, /\r\nx-request-id: [0-9a-f-]{36}\r\n/)
        assert.deepEqual(
          h.logged.filter(line => line.msg === 'request failed'),
          [],
        )
      })
    }

    test('if the target is a whole URL, a wrong method gets a 405 with Allow', async () => {
      const { token } = await makeUser(h)
      for (const path of ['/api/v1/game-levels', '/api/v1/notifications/unread-count', '/api/v1/game-levels?x=1']) {
        const head = `HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`
        const { statuses, text } = await exchangeRaw(port, `DELETE http://localhost${path} ${head}`)
        assert.deepEqual(statuses, [405], path)
        assert.match(text, /\r\nallow: GET, HEAD\r\n/)
      }
      for (const url of ['http://localhost', 'http://localhost?x=/healthz']) {
        assert.deepEqual((await exchangeRaw(port, `PATCH ${url} ${LAST.slice(13)}`)).statuses, [405], url)
      }
    })

    const expecting = (start: string, length: number) =>
      `${start} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: ${length}\r\n\r\n`
    for (const [start, length, status] of [
      ['POST /api/v1/auth/verify-otp', 100_000, 413],
      ['POST /api/v1/game-levels', 2, 405],
      ['POST /api/v1/auth/logout', 2, 401],
      ['POST /healthz#x', 2, 400],
    ] as const) {
      test(`with Expect: 100-continue, ${start} gets its ${status} without a 100 and closes`, async () => {
        const { statuses, text } = await exchangeRaw(port, expecting(start, length))
        assert.deepEqual(statuses, [status])
        assert.match(text, /\r\nconnection: close\r\n/i)
      })
    }

    test('with Expect: 100-continue, a route that reads the body asks for it', async () => {
      const connection = await openRaw(port, expecting('POST /api/v1/auth/verify-otp', 2))
      await connection.seen(/ 100 /)
      connection.socket.write(`{}${LAST}`)
      await connection.closed()
      assert.deepEqual(connection.statuses(), [100, 422, 200])
    })

    test('after a request over HTTP/1.0, /readyz does not mention a header', async () => {
      await exchangeRaw(port, 'GET /healthz HTTP/1.0\r\n\r\n')
      const { body } = await h.call('GET', '/readyz')
      assert.match(body.warning, /requests that look forwarded .* TRUST_PROXY$/)
      assert.doesNotMatch(body.warning, /header/)
    })

    test('a refused request behind other requests gets its answer after theirs', async () => {
      const bad = 'GET /healthz HTTP/1.1\r\n\r\n'
      assert.deepEqual((await exchangeRaw(port, GET + bad + GET)).statuses, [200, 400])
      assert.deepEqual(
        (await exchangeRaw(port, `${GET}CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n`)).statuses,
        [200, 405],
      )
    })
  })
})
