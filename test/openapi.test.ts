import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { describe } from '../src/cli/openapi.ts'
import { anotherApp, harness } from './support/app.ts'
import { documentedAnswers, type ListedOperation, listOperations } from './support/documented.ts'
import { ENDPOINTS } from './support/endpoints.ts'
import { makeUser } from './support/factories.ts'
import { credentials, makeOwner, sendGoodRequests } from './support/good-requests.ts'

const h = harness()
const document = await describe()
const operations = listOperations(document)
const assertDocumented = documentedAnswers(document)

const getIds = (listed: ListedOperation[]) => listed.map(({ operation }) => operation.operationId)
const withStatus = (status: string) => operations.filter(({ operation }) => status in operation.responses)
// A logout takes a body, but it never refuses one.
const withBody = operations.filter(({ operation }) => operation.requestBody && operation.operationId !== 'logout')

suite('the answers match the OpenAPI document', { timeout: 60_000 }, () => {
  test('every operation answers a valid request as documented, with no undeclared member', async () => {
    for (const listed of operations) {
      for (const answer of await sendGoodRequests(h, `${listed.method} ${listed.path}`)) {
        assert.ok(answer.status < 300, `${listed.path}: ${answer.text}`)
        assertDocumented(listed, answer)
      }
    }
  })

  test('a request without a token gets 401 if and only if the document declares a 401 for the operation', async () => {
    const specified = ENDPOINTS.filter(([, , auth]) => auth === 'no').map(([, path]) => path)
    const publicPaths = [...specified, '/api/v1/push/key']
    const withoutToken = operations.filter(({ operation }) => !('401' in operation.responses))
    assert.deepEqual(withoutToken.map(({ path }) => path).sort(), publicPaths.toSorted())
    for (const listed of operations) {
      const answer = await h.call(listed.method, listed.path.replace('{id}', '1'))
      assert.equal(answer.status === 401, '401' in listed.operation.responses, listed.path)
      assertDocumented(listed, answer)
    }
  })

  test('every operation that takes a body answers an invalid body with a documented 413, 415 or 422', async () => {
    assert.deepEqual(withStatus('415'), withBody)
    const { token } = await makeUser(h)
    for (const listed of withBody) {
      for (const [body, type, expected] of [
        ['x'.repeat(2 ** 20 + 1), 'application/json', 413],
        ['{}', 'text/plain', 415],
        ['[', 'application/json', 422],
      ] as const) {
        const headers = { 'content-type': type }
        const answer = await h.call(listed.method, listed.path, { token: credentials(listed, token), body, headers })
        assert.equal(answer.status, expected, listed.path)
        assertDocumented(listed, answer)
      }
    }
  })

  test('an operation that takes no body ignores an invalid body', async () => {
    // The test leaves out `streamNotifications`, because the answer of this operation does not end.
    const others = operations.filter(
      listed => !withBody.includes(listed) && listed.operation.operationId !== 'streamNotifications',
    )
    for (const { method, path } of others) {
      const { token, id } = await makeOwner(h)
      const headers = { 'content-type': 'text/plain' }
      const answer = await h.call(method, path.replace('{id}', String(id)), { token, body: '[', headers })
      assert.equal(answer.status, 200, path)
    }
  })

  test('a forbidden request gets a documented 403, and a request for an unknown notification gets a documented 404', async () => {
    assert.deepEqual(getIds(withStatus('403')), ['reportEvents', 'readNotification', 'deleteNotification'])
    const { token } = await makeUser(h)
    for (const listed of withStatus('403')) {
      const path = listed.path.replace('{id}', String((await makeOwner(h)).id))
      const refused = await h.call(listed.method, path, { token })
      assert.equal(refused.status, 403, path)
      assertDocumented(listed, refused)
      if (!('404' in listed.operation.responses)) continue
      const unknown = await h.call(listed.method, listed.path.replace('{id}', '123456789'), { token })
      assert.equal(unknown.status, 404, path)
      assertDocumented(listed, unknown)
    }
  })

  test('only the operations throttled by client send rate-limit headers, and these headers and the 429 are documented', async () => {
    const throttled = withStatus('429').filter(({ operation }) => operation.operationId !== 'refreshToken')
    assert.deepEqual(getIds(throttled), ['requestOtp', 'verifyOtp'])
    for (const listed of operations) {
      const { method, path, operation } = listed
      const { status, headers } = await h.call(method, path.replace('{id}', '1'))
      const expected = throttled.includes(listed) ? Object.keys(operation.responses[status]!.headers!) : []
      assert.equal('x-ratelimit-limit' in headers, expected.length > 0, path)
      for (const name of expected) assert.ok(name.toLowerCase() in headers, name)
    }
    const strict = await anotherApp(h, { THROTTLE_REQUEST_OTP: '1', THROTTLE_VERIFY_OTP: '1' })
    for (const listed of throttled) {
      await strict.call(listed.method, listed.path)
      const answer = await strict.call(listed.method, listed.path)
      assert.equal(answer.status, 429)
      assertDocumented(listed, answer)
    }
    await strict.close()
  })

  test('the 429 of an operation throttled by session is documented', async () => {
    const { token } = await makeUser(h)
    const listed = withStatus('429').find(({ operation }) => operation.operationId === 'refreshToken')!
    const answers = await Promise.all(Array.from({ length: 61 }, () => h.call(listed.method, listed.path, { token })))
    assert.equal(answers.filter(({ status }) => status === 429).length, 1)
    for (const answer of answers) assertDocumented(listed, answer)
  })
})

suite('GET /api/v1/openapi.json', () => {
  test('anyone can get the OpenAPI document, and caches must revalidate their copies before each use', async () => {
    const { status, headers, body } = await h.call('GET', '/api/v1/openapi.json')
    assert.equal(status, 200)
    assert.equal(headers['cache-control'], 'no-cache')
    assert.deepEqual(body, JSON.parse(JSON.stringify(document)))
  })

  test('a request with the ETag of the current OpenAPI document gets 304', async () => {
    const { headers } = await h.call('GET', '/api/v1/openapi.json')
    const again = await h.call('GET', '/api/v1/openapi.json', { headers: { 'if-none-match': headers.etag! } })
    assert.equal(again.status, 304)
  })
})

suite('GET /docs', () => {
  const FILES = {
    '/docs': 'text/html; charset=utf-8',
    '/docs/start.js': 'text/javascript; charset=utf-8',
    '/docs/swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
    '/docs/swagger-ui.css': 'text/css; charset=utf-8',
  }

  for (const [path, type] of Object.entries(FILES)) {
    test(`${path} has the right content type, a strict Content-Security-Policy, and an ETag that yields a 304`, async () => {
      const { status, headers, text } = await h.call('GET', path)
      assert.deepEqual([status, headers['content-type'], headers['cache-control']], [200, type, 'no-cache'])
      assert.match(headers['content-security-policy']!, /^default-src 'none'; script-src 'self'; style-src 'self'; /)
      assert.doesNotMatch(headers['content-security-policy']!, /unsafe|http|\*/)
      assert.equal(headers['x-content-type-options'], 'nosniff')
      const again = await h.call('GET', path, { headers: { 'if-none-match': headers.etag! } })
      assert.deepEqual([again.status, again.text], [304, ''])
      const head = await h.call('HEAD', path)
      assert.deepEqual(
        [head.status, head.headers['content-length'], head.text],
        [200, String(Buffer.byteLength(text)), ''],
      )
      const refused = await h.call('POST', path)
      assert.deepEqual([refused.status, refused.headers.allow], [405, 'GET, HEAD'])
    })
  }

  test('the page /docs links only to files below /docs and to the OpenAPI document', async () => {
    const { text } = await h.call('GET', '/docs')
    const links = [...text.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, link]) => link!)
    const [icon, ...others] = links
    assert.match(icon!, /^data:image\/svg\+xml,/)
    assert.deepEqual(
      others.sort(),
      ['/api/v1/openapi.json', ...Object.keys(FILES).slice(1)].map(path => path.slice(1)).sort(),
    )
    assert.doesNotMatch(text, /<style|<script(?![^>]* src=)| style=| on\w+=/)
  })

  for (const path of [
    '/docs/',
    '/docs/index.html',
    '/docs/swagger-ui.js',
    '/docs/..%2fdocument.ts',
    '/docs/%2e%2e/x',
  ]) {
    test(`GET ${path} gets 404`, async () => {
      assert.equal((await h.call('GET', path)).status, 404)
    })
  }
})
