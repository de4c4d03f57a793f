import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Courtside, CourtsideError, memoryStorage } from 'courtside-client'
import { recordRequests, startServer } from './support/client.ts'

const UNAUTHENTICATED = JSON.stringify({ message: 'Unauthenticated.', code: 'unauthenticated' })

async function catchFailure(call: Promise<unknown>): Promise<CourtsideError> {
  const error = await call.then(
    () => assert.fail('the call succeeded'),
    error => error,
  )
  assert.ok(error instanceof CourtsideError, String(error))
  return error
}

function withToken() {
  const storage = memoryStorage()
  storage.set('token', 'a.b.c')
  return storage
}

describe('an answer that does not come from the service', () => {
  const cases: [answer: string, status: number, body: string, headers: Record<string, string>, retryAfter?: number][] =
    [
      ['an error page from a proxy', 502, '<h1>Bad Gateway</h1>', {}],
      ['a 503 with Retry-After in seconds', 503, '', { 'retry-after': '7' }, 7],
      ['a 503 with a past date in Retry-After', 503, '', { 'retry-after': 'Wed, 21 Oct 2015 07:28:00 GMT' }, 0],
      ['a 503 with an unreadable Retry-After', 503, '', { 'retry-after': 'soon' }],
      ['the login page of a Wi-Fi network', 200, '<form>Room number</form>', {}],
      ['JSON from another server', 404, '{"error": "no such route"}', {}],
    ]
  for (const [answer, status, body, headers, retryAfter] of cases) {
    test(`a call that gets ${answer} fails with the error code bad_answer`, async () => {
      const server = await startServer((_, response) => response.writeHead(status, headers).end(body))
      const error = await catchFailure(new Courtside({ url: `${server.url}/`, language: 'en' }).gameLevels())
      assert.deepEqual([error.status, error.code, error.retryAfter], [status, 'bad_answer', retryAfter])
      assert.equal(error.message, 'The service gave an unexpected answer.')
      await server.close()
    })
  }

  test('a 401 from a proxy does not end the session', async () => {
    const server = await startServer((_, response) => response.writeHead(401).end('<h1>Authorization required</h1>'))
    const { client, sent } = recordRequests({ url: server.url, storage: withToken() })
    assert.equal((await catchFailure(client.me())).code, 'bad_answer')
    assert.equal(sent.length, 1)
    assert.equal(await client.signedIn(), true)
    await server.close()
  })
})

describe('a service that cannot be reached', () => {
  test('if the connection is refused, the call fails with the error code network, the status 0 and a cause', async () => {
    const server = await startServer(() => {})
    await server.close()
    const error = await catchFailure(new Courtside({ url: server.url, language: 'fr' }).gameLevels())
    assert.deepEqual([error.status, error.code], [0, 'network'])
    assert.equal(error.message, 'Le service est injoignable. Vérifiez votre connexion.')
    assert.ok(error.cause instanceof Error)
  })

  test('if the connection breaks during an answer, the call fails with the error code network', async () => {
    const server = await startServer((_, response) => {
      response.writeHead(200, { 'content-length': '100' })
      response.write('{"data":', () => response.destroy())
    })
    assert.equal((await catchFailure(new Courtside({ url: server.url }).gameLevels())).code, 'network')
    await server.close()
  })

  test('if a refresh fails, the client stays signed in and tries the refresh again during the next call', async () => {
    let refreshes = 0
    const server = await startServer((request, response) => {
      if (!request.url!.endsWith('/refresh')) return void response.writeHead(401).end(UNAUTHENTICATED)
      refreshes += 1
      if (refreshes === 1) response.writeHead(503, { 'retry-after': '5' }).end()
      else response.destroy()
    })
    const client = new Courtside({ url: server.url, storage: withToken() })
    client.onSignedOut(() => assert.fail('the session has not ended'))
    const first = await catchFailure(client.me())
    assert.deepEqual([first.status, first.retryAfter], [503, 5])
    assert.equal((await catchFailure(client.me())).code, 'network')
    assert.equal(await client.signedIn(), true)
    assert.equal(refreshes, 2)
    await server.close()
  })

  test('if a logout does not reach the service, the client signs out and throws a network error', async () => {
    const server = await startServer((_, response) => void response.destroy())
    const storage = withToken()
    const client = new Courtside({ url: server.url, storage })
    assert.equal((await catchFailure(client.logout())).code, 'network')
    assert.equal(await client.signedIn(), false)
    assert.equal(await storage.get('last_token'), 'a.b.c')
    await server.close()
  })
})
