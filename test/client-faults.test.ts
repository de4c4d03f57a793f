import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Courtside, CourtsideError, memoryStorage } from 'courtside-client'
import { noted, startServer } from './support/client.ts'

const UNAUTHENTICATED = JSON.stringify({ message: 'Unauthenticated.', code: 'unauthenticated' })

async function failureOf(call: Promise<unknown>): Promise<CourtsideError> {
  const error = await call.then(
    () => assert.fail('it went well'),
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

describe('what answers is not the service', () => {
  const cases: [what: string, status: number, body: string, headers: Record<string, string>, retryAfter?: number][] = [
    ['a proxy’s page of an outage', 502, '<h1>Bad Gateway</h1>', {}],
    ['a proxy that says when to come back', 503, '', { 'retry-after': '7' }, 7],
    ['a date that has passed', 503, '', { 'retry-after': 'Wed, 21 Oct 2015 07:28:00 GMT' }, 0],
    ['a Retry-After that says nothing', 503, '', { 'retry-after': 'soon' }],
    ['the page of a hotel’s Wi-Fi', 200, '<form>Room number</form>', {}],
    ['JSON of something else', 404, '{"error": "no such route"}', {}],
  ]
  for (const [what, status, body, headers, retryAfter] of cases) {
    test(`${what}: bad_answer`, async () => {
      const server = await startServer((_, response) => response.writeHead(status, headers).end(body))
      const error = await failureOf(new Courtside({ url: `${server.url}/`, language: 'en' }).gameLevels())
      assert.deepEqual([error.status, error.code, error.retryAfter], [status, 'bad_answer', retryAfter])
      assert.equal(error.message, 'The service gave an unexpected answer.')
      await server.close()
    })
  }

  test('a proxy that asks for a password doesn’t end the session', async () => {
    const server = await startServer((_, response) => response.writeHead(401).end('<h1>Authorization required</h1>'))
    const { client, sent } = noted({ url: server.url, storage: withToken() })
    assert.equal((await failureOf(client.me())).code, 'bad_answer')
    assert.equal(sent.length, 1)
    assert.equal(await client.signedIn(), true)
    await server.close()
  })
})

describe('nothing answers', () => {
  test('network, status 0, and the cause', async () => {
    const server = await startServer(() => {})
    await server.close()
    const error = await failureOf(new Courtside({ url: server.url, language: 'fr' }).gameLevels())
    assert.deepEqual([error.status, error.code], [0, 'network'])
    assert.equal(error.message, 'Le service est injoignable. Vérifiez votre connexion.')
    assert.ok(error.cause instanceof Error)
  })

  test('an answer that breaks off', async () => {
    const server = await startServer((_, response) => {
      response.writeHead(200, { 'content-length': '100' })
      response.write('{"data":', () => response.destroy())
    })
    assert.equal((await failureOf(new Courtside({ url: server.url }).gameLevels())).code, 'network')
    await server.close()
  })

  test('a refresh that doesn’t get through keeps the session, and is tried again at the next call', async () => {
    let refreshes = 0
    const server = await startServer((request, response) => {
      if (!request.url!.endsWith('/refresh')) return void response.writeHead(401).end(UNAUTHENTICATED)
      refreshes += 1
      if (refreshes === 1) response.writeHead(503, { 'retry-after': '5' }).end()
      else response.destroy()
    })
    const client = new Courtside({ url: server.url, storage: withToken() })
    client.onSignedOut(() => assert.fail('nobody said that the session is over'))
    const first = await failureOf(client.me())
    assert.deepEqual([first.status, first.retryAfter], [503, 5])
    assert.equal((await failureOf(client.me())).code, 'network')
    assert.equal(await client.signedIn(), true)
    assert.equal(refreshes, 2)
    await server.close()
  })

  test('a log-out that doesn’t get through ends it here, and says so', async () => {
    const server = await startServer((_, response) => void response.destroy())
    const storage = withToken()
    const client = new Courtside({ url: server.url, storage })
    assert.equal((await failureOf(client.logout())).code, 'network')
    assert.equal(await client.signedIn(), false)
    assert.equal(await storage.get('last_token'), 'a.b.c')
    await server.close()
  })
})
