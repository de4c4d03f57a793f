import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, test } from 'node:test'
import { errorCodes } from 'fastify'
import { createApp } from '../src/app.ts'
import { anotherApp, harness } from './support/app.ts'
import { signUp } from './support/scenario.ts'

const h = harness({ CORS_ORIGINS: 'https://app.example.com,capacitor://localhost' })

describe('paths and methods', () => {
  const unknown = ['/api', '/api/v1', '/api/v1/', '/api/v2/game-levels', '/api/v1/game-levels/', '/%zz', '/api/v1/%ff']
  for (const url of [...unknown, `/${'x'.repeat(3000)}`]) {
    test(`a request for the unknown path ${url.slice(0, 40)} gets 404 with every method`, async () => {
      for (const method of ['GET', 'POST', 'DELETE']) {
        const answer = await h.call(method, url, { headers: { 'content-type': 'nonsense' }, body: '{' })
        assert.deepEqual([answer.status, answer.body], [404, { message: 'Introuvable.', code: 'not_found' }])
      }
    })
  }

  const methods: [string, string, string][] = [
    ['POST', '/api/v1/game-levels', 'GET, HEAD, OPTIONS'],
    ['GET', '/api/v1/auth/request-otp', 'OPTIONS, POST'],
    ['PATCH', '/api/v1/auth/me', 'DELETE, GET, HEAD, OPTIONS'],
    ['TRACE', '/api/v1/auth/me', 'DELETE, GET, HEAD, OPTIONS'],
    ['QUERY', '/api/v1/game-levels', 'GET, HEAD, OPTIONS'],
    ['POST', '/api/v1/game%2Dlevels?page=1', 'GET, HEAD, OPTIONS'],
    // These paths also match /api/v1/notifications/:id, which has the method DELETE.
    ['DELETE', '/api/v1/notifications/unread-count', 'GET, HEAD, OPTIONS'],
    ['DELETE', '/api/v1/notifications/stream?x=1', 'GET, HEAD, OPTIONS'],
    ['DELETE', '/api/v1/notifications/read%2Dall', 'OPTIONS, POST'],
    ['PATCH', '/api/v1/notifications/unread-count', 'GET, HEAD, OPTIONS'],
    ['PATCH', '/api/v1/notifications/12', 'DELETE, OPTIONS'],
  ]
  for (const [method, url, allow] of methods) {
    test(`${method} ${url} gets 405 with Allow: ${allow}`, async () => {
      const answer = await h.call(method, url)
      assert.equal(answer.status, 405)
      assert.equal(answer.headers.allow, allow)
      assert.deepEqual(answer.body, { message: 'Méthode non autorisée.', code: 'method_not_allowed' })
    })
  }

  test('without CORS, OPTIONS gets a 405, and Allow does not contain it', async () => {
    const other = await anotherApp(h, { CORS_ORIGINS: '' })
    const { status, headers } = await other.call('OPTIONS', '/api/v1/game-levels')
    assert.deepEqual([status, headers.allow], [405, 'GET, HEAD'])
    await other.close()
  })

  test('every error of the framework that is a fault of the client gets a 4xx with our body, and no error line', async () => {
    const app = await createApp(h.ctx)
    const clientErrors = Object.values(errorCodes).filter(create => {
      const { statusCode } = new create('a', 'b', 'c')
      return statusCode !== undefined && statusCode >= 400 && statusCode < 500
    })
    assert.ok(clientErrors.length > 10)
    clientErrors.forEach((create, at) => {
      app.get(`/error/${at}`, { config: { access: 'public' } }, async () => {
        throw new create('a', 'b', 'c')
      })
    })
    const countErrors = () => h.logged.filter(line => line.msg === 'request failed').length
    const before = countErrors()
    for (const [at, create] of clientErrors.entries()) {
      const answer = await app.inject({ method: 'GET', url: `/error/${at}` })
      assert.ok(answer.statusCode >= 400 && answer.statusCode < 500, `${create.name} ${answer.statusCode}`)
      assert.deepEqual(Object.keys(answer.json()), ['message', 'code'])
    }
    assert.equal(countErrors(), before)
    await app.close()
  })

  test('a HEAD request gets the same answer as a GET request, but without the body', async () => {
    const answer = await h.call('HEAD', '/api/v1/game-levels')
    assert.deepEqual([answer.status, answer.text], [200, ''])
  })
})

describe('headers', () => {
  test('every answer, including errors, has a request id, the header Cache-Control: no-store, and the security headers', async () => {
    for (const url of ['/api/v1/auth/me', '/nowhere', '/%zz', '/healthz']) {
      const { headers } = await h.call('GET', url)
      assert.match(headers['x-request-id']!, /^[0-9a-f-]{36}$/)
      assert.equal(headers['cache-control'], 'no-store')
      assert.equal(headers['x-content-type-options'], 'nosniff')
      assert.equal(headers['content-security-policy'], "default-src 'none'; frame-ancestors 'none'")
      assert.match(headers['content-type']!, /^application\/json; charset=utf-8$/)
    }
  })

  test('CORS allows only the configured origin, and exposes the headers that a client must read', async () => {
    const allowed = await h.call('GET', '/api/v1/game-levels', { headers: { origin: 'https://app.example.com' } })
    assert.equal(allowed.headers['access-control-allow-origin'], 'https://app.example.com')
    assert.match(allowed.headers['access-control-expose-headers']!, /Retry-After.*RateLimit/)
    const preflight = await h.call('OPTIONS', '/api/v1/auth/me', {
      headers: { origin: 'https://app.example.com', 'access-control-request-method': 'DELETE' },
    })
    assert.equal(preflight.status, 204)
    assert.match(preflight.headers['access-control-allow-methods']!, /DELETE/)
    const app = await h.call('GET', '/api/v1/game-levels', { headers: { origin: 'capacitor://localhost' } })
    assert.equal(app.headers['access-control-allow-origin'], 'capacitor://localhost')
    const refused = await h.call('GET', '/api/v1/game-levels', { headers: { origin: 'https://evil.example' } })
    assert.equal(refused.headers['access-control-allow-origin'], undefined)
  })

  test('an answer to a path that the router cannot decode has the same CORS headers as other answers', async () => {
    for (const origin of ['https://app.example.com', 'https://evil.example', undefined]) {
      const headers = { ...(origin && { origin }) }
      const readHeaders = async (url: string) => {
        const answer = await h.call('GET', url, { headers })
        assert.equal(answer.status, 404)
        return Object.entries(answer.headers).filter(([name]) => /^(access-control|vary)/.test(name))
      }
      assert.deepEqual((await readHeaders('/%zz')).sort(), (await readHeaders('/nowhere')).sort())
    }
  })

  test('a CORS preflight allows the methods of every registered route', async () => {
    const allowed = async () => {
      const { headers } = await h.call('OPTIONS', '/api/v1/auth/me', {
        headers: { origin: 'https://app.example.com', 'access-control-request-method': 'PATCH' },
      })
      return headers['access-control-allow-methods']!.split(', ').sort()
    }
    const { body: document } = await h.call('GET', '/api/v1/openapi.json')
    const documented = Object.values<object>(document.paths).flatMap(path => Object.keys(path))
    assert.ok(documented.length > 10)
    assert.deepEqual(await allowed(), [...new Set(['HEAD', ...documented.map(name => name.toUpperCase())])].sort())
    const app = await createApp(h.ctx)
    app.route({ method: 'PATCH', url: '/api/v1/later', handler: async () => ({}) })
    await app.ready()
    const { headers } = await app.inject({
      method: 'OPTIONS',
      url: '/api/v1/later',
      headers: { origin: 'https://app.example.com', 'access-control-request-method': 'PATCH' },
    })
    assert.match(String(headers['access-control-allow-methods']), /\bPATCH\b/)
    await app.close()
  })
})

describe('bodies', () => {
  const assessLevel = (body: unknown, token: string, headers: Record<string, string> = {}) =>
    h.call('POST', '/api/v1/auth/level-assessment', { token, body, headers })

  test('a body that is malformed, not an object or not UTF-8 gets a 422 that names the field `body`', async () => {
    const { token } = await signUp(h)
    for (const body of ['{', '[]', '"x"', '7', 'null', 'null x', 'true', '{"game_level_id":1}x', '\ufeff{}']) {
      const answer = await assessLevel(body, token)
      assert.equal(answer.status, 422, body)
      assert.deepEqual(Object.keys(answer.body.errors), ['body'])
    }
    const latin = await h.app.inject({
      method: 'POST',
      url: '/api/v1/auth/level-assessment',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      payload: Buffer.from('{"x":"\xe9"}', 'latin1'),
    })
    assert.equal(latin.statusCode, 422)
  })

  test('a compressed body gets a 415 that names the accepted coding', async () => {
    const { token } = await signUp(h)
    for (const coding of ['gzip', 'br', 'gzip, identity', 'GZIP']) {
      const answer = await assessLevel('{"game_level_id":1}', token, { 'content-encoding': coding })
      assert.deepEqual([answer.status, answer.headers['accept-encoding']], [415, 'identity'], coding)
    }
    assert.equal((await assessLevel('{"game_level_id":1}', token, { 'content-encoding': 'Identity' })).status, 200)
    assert.equal((await assessLevel('{"game_level_id":1}', token, { 'content-encoding': '' })).status, 200)
  })

  test('the answer to a forbidden character deep in a body shows only the start of its path', async () => {
    const { token } = await signUp(h)
    const answer = await assessLevel(`{"${'k'.repeat(40_000)}":"\\u0000"}`, token)
    assert.equal(answer.status, 422)
    assert.ok(answer.text.length < 2_000)
    const deep = await assessLevel(`${'{"a":'.repeat(3_000)}"\\u0000"${'}'.repeat(3_000)}`, token)
    assert.equal(deep.status, 422)
    assert.ok(deep.text.length < 2_000)
  })

  test('unknown members of a body are ignored, even __proto__ and constructor', async () => {
    const { token } = await signUp(h)
    for (const key of ['__proto__', 'constructor', 'toString', 'x']) {
      const answer = await assessLevel(`{"${key}":{"game_level_id":"no"},"game_level_id":1}`, token)
      assert.equal(answer.status, 200, answer.text)
    }
    assert.equal((await assessLevel('{"__proto__":{"game_level_id":1}}', token)).status, 422)
  })

  test('a zero-length body counts as no body, with any content type', async () => {
    const { token } = await signUp(h)
    for (const type of ['text/plain', 'nonsense', '']) {
      const answer = await assessLevel('', token, { 'content-type': type })
      assert.deepEqual(Object.keys(answer.body.errors), ['game_level_id'])
    }
  })

  test('a body of 64 KiB is accepted, and a body with one more byte gets 413', async () => {
    const { token } = await signUp(h)
    const bodyOfSize = (size: number) => `{"game_level_id":1,"x":"${'y'.repeat(size - 26)}"}`
    assert.equal((await assessLevel(bodyOfSize(65_536), token)).status, 200)
    for (const type of ['application/json', 'text/plain', 'nonsense', '']) {
      assert.equal((await assessLevel(bodyOfSize(65_537), token, { 'content-type': type })).status, 413)
    }
  })

  test('an e-mail address with 65,000 spaces is rejected within a second', async () => {
    // The validation takes milliseconds. It would take seconds if its time grew with the square of the length.
    const email = `a${' '.repeat(65_000)}b`
    const start = performance.now()
    const answer = await h.call('POST', '/api/v1/auth/verify-otp', { body: { email, code: '0000' } })
    assert.equal(answer.status, 422)
    assert.ok(performance.now() - start < 1_000)
  })

  test('a JSON body whose nesting is deeper than the call stack is accepted', async () => {
    const { token } = await signUp(h)
    const deep = `{"game_level_id":1,"x":${'['.repeat(30_000)}"\\u0041"${']'.repeat(30_000)}}`
    assert.equal((await assessLevel(deep, token)).status, 200)
  })
})

describe('on a real socket', () => {
  async function exchange(bytes: string): Promise<string> {
    if (!h.app.server.listening) await h.app.listen({ port: 0, host: '127.0.0.1' })
    const socket = connect((h.app.server.address() as { port: number }).port, '127.0.0.1')
    socket.write(bytes)
    let answer = ''
    socket.setEncoding('utf8').on('data', chunk => {
      answer += chunk
    })
    await once(socket, 'close')
    return answer
  }

  test('the answers 400 and 431 of the HTTP parser have the same shape as other errors', async () => {
    for (const [bytes, status, code] of [
      ['NOT HTTP AT ALL\r\n\r\n', 400, 'validation_failed'],
      [`GET / HTTP/1.1\r\nHost: x\r\nX-Big: ${'y'.repeat(20_000)}\r\n\r\n`, 431, 'payload_too_large'],
    ] as const) {
      const answer = await exchange(bytes)
      assert.match(answer, new RegExp(`^HTTP/1.1 ${status} `))
      assert.equal(JSON.parse(answer.split('\r\n\r\n')[1]!).code, code)
      assert.deepEqual(
        [h.logged.at(-1)!.msg, h.logged.at(-1)!.status],
        ['refused a request that is not valid HTTP', status],
      )
    }
  })

  test('a request whose chunked body exceeds the limit gets 413', async () => {
    const { token } = await signUp(h)
    const chunk = `4000\r\n${'x'.repeat(0x4000)}\r\n`
    const answer = await exchange(
      `POST /api/v1/auth/level-assessment HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n` +
        `Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${chunk.repeat(5)}0\r\n\r\n`,
    )
    assert.match(answer, /^HTTP\/1.1 413 /)
  })

  test('a client that disconnects before it has sent its whole body causes no error in the log', async () => {
    if (!h.app.server.listening) await h.app.listen({ port: 0, host: '127.0.0.1' })
    const arrived = once(h.app.server, 'request')
    const socket = connect((h.app.server.address() as { port: number }).port, '127.0.0.1')
    socket.write(
      'POST /api/v1/auth/verify-otp HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n' +
        'Content-Length: 99\r\n\r\n{"email":',
    )
    const [, response] = await arrived
    socket.destroy()
    await once(response, 'close')
    // Each of these requests makes a round trip to the database. If there were an error, the process would log the
    // error during these requests.
    for (let turn = 0; turn < 10; turn += 1) await h.call('GET', '/readyz')
    assert.deepEqual(
      h.logged.filter(line => line.level === 50),
      [],
    )
  })

  test('an unknown Expect header is ignored', async () => {
    const answer = await exchange('GET /healthz HTTP/1.1\r\nHost: x\r\nExpect: magic\r\nConnection: close\r\n\r\n')
    assert.match(answer, /^HTTP\/1.1 200 /)
  })
})
