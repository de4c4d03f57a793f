// These tests check that each JSON answer has all keys that its route declares, and no undeclared keys.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import Fastify from 'fastify'
import { Type } from '../src/http/type.ts'
import type { DevPush } from '../src/reach/dev-push.ts'
import { encrypt, readAuthSecret, readPublicKey } from '../src/reach/encryption.ts'
import { harness } from './support/app.ts'
import { checkAnswers } from './support/declared-answers.ts'
import type { Answer } from './support/documented.ts'
import { makeUser } from './support/factories.ts'
import { GOOD_REQUESTS, sendGoodRequests } from './support/good-requests.ts'

const METRICS_TOKEN = 'Qm4tWz7rKx2vNp9s'
const LOCAL = { host: 'localhost:3000' }

const h = harness({ METRICS_TOKEN })

/** Valid requests to the routes that are not in the OpenAPI document. Routes that only serve a file are left out. */
const OTHER_REQUESTS: Record<string, () => Promise<Answer>> = {
  'GET /healthz': () => h.call('GET', '/healthz'),
  'GET /readyz': () => h.call('GET', '/readyz'),
  'GET /metrics': () => h.call('GET', '/metrics', { token: METRICS_TOKEN }),
  'GET /api/v1/openapi.json': () => h.call('GET', '/api/v1/openapi.json'),
  'GET /dev/mailbox': () => h.call('GET', `/dev/mailbox?key=${h.ctx.mailbox!.key}`, { headers: LOCAL }),
  'GET /dev/mailbox.json': async () => {
    await h.ctx.mailbox!.send({ to: 'zoe@example.com', subject: 'Code', text: '1234', html: '<p>1234</p>' })
    return h.call('GET', `/dev/mailbox.json?key=${h.ctx.mailbox!.key}`, { headers: LOCAL })
  },
  'GET /unsubscribe/{token}': () => h.call('GET', '/unsubscribe/1.token'),
  'POST /unsubscribe/{token}': () => h.call('POST', '/unsubscribe/1.token'),
  'POST /dev/push/subscriptions': subscribe,
  'POST /dev/push/messages/{id}': sendPush,
  'GET /dev/push/messages.json': async () => {
    await sendPush()
    return h.call('GET', `/dev/push/messages.json?key=${h.ctx.mailbox!.key}`, { headers: LOCAL })
  },
  'POST /dev/play': async () => {
    const { token } = await makeUser(h)
    return h.call('POST', `/dev/play?key=${h.ctx.mailbox!.key}`, { token, headers: LOCAL, body: { round: 1, step: 0 } })
  },
}

function subscribe(): Promise<Answer> {
  return h.call('POST', `/dev/push/subscriptions?key=${h.ctx.mailbox!.key}`, { headers: LOCAL })
}

async function sendPush(): Promise<Answer> {
  const { endpoint, keys } = (await subscribe()).body as ReturnType<DevPush['subscribe']>
  const [p256dh, auth] = [readPublicKey(keys.p256dh)!, readAuthSecret(keys.auth)!]
  const url = `/dev/push/messages/${endpoint.split('/').at(-1)}`
  const headers = { ...LOCAL, ttl: '60', urgency: 'high', topic: 'x' }
  const payload = encrypt(Buffer.from('{}'), { p256dh, auth })
  const { statusCode, body } = await h.app.inject({ method: 'POST', url, headers, payload })
  return { status: statusCode, headers: {}, body: undefined, text: body }
}

/** Returns the method and path of every route. HEAD and OPTIONS are left out. A parameter is written as `{id}`. */
function listRoutes(): string[] {
  const parts: string[] = []
  return h.app
    .printRoutes({ commonPrefix: false })
    .split('\n')
    .flatMap(line => {
      const [, indent, part, methods] = /^([│ ]*)[├└]── (\S*) ?(?:\((.*)\))?/.exec(line) ?? []
      if (indent === undefined) return []
      parts.length = indent.length / 4
      parts.push(part!)
      return (methods ?? '')
        .split(', ')
        .filter(method => method && method !== 'HEAD' && method !== 'OPTIONS')
        .map(method => `${method} ${parts.join('').replace(/:(\w+)/g, '{$1}')}`)
    })
}

/** The routes of the files of the page and of the documentation. */
const FILES = /^GET \/(web\/.*|client\/.*|docs.*|manifest\.webmanifest|service-worker\.js)?$/

suite('every answer has the declared keys and no others', () => {
  test('each route answers a valid request with 2xx, and each JSON answer matches the schema of its route', async () => {
    const routes = listRoutes()
    const files = routes.filter(route => FILES.test(route))
    assert.ok(files.length > 10)
    const requested = [...Object.keys(GOOD_REQUESTS), ...Object.keys(OTHER_REQUESTS)]
    assert.deepEqual(routes.filter(route => !files.includes(route)).sort(), requested.sort())
    for (const file of files) {
      const { status, headers } = await h.call('GET', file.slice('GET '.length))
      assert.equal(status, 200, file)
      assert.doesNotMatch(headers['content-type']!, /application\/json/, file)
    }
    for (const route of requested) {
      const request = OTHER_REQUESTS[route]
      for (const answer of request ? [await request()] : await sendGoodRequests(h, route)) {
        assert.ok(answer.status >= 200 && answer.status < 300, `${route}: ${answer.status} ${answer.text}`)
      }
    }
    const pages = ['GET /dev/mailbox', 'GET /unsubscribe/{token}', 'POST /unsubscribe/{token}']
    const withoutJson = ['GET /metrics', 'GET /api/v1/notifications/stream', ...pages, 'POST /dev/push/messages/{id}']
    for (const route of requested.filter(route => !withoutJson.includes(route))) {
      const isCompared = [200, 201].some(status => h.answers.checked.has(`${route.replace('{id}', ':id')} ${status}`))
      assert.ok(isCompared, `${route} was not compared`)
    }
    assert.ok(h.answers.checked.has('POST /internal/v1/events 202'))
    assert.deepEqual(h.answers.violations, [])
  })

  test('checkAnswers reports undeclared and missing keys at any depth, and answers without a schema', async () => {
    const app = Fastify()
    app.setSerializerCompiler(() => JSON.stringify)
    const Item = Type.Object({ id: Type.Integer(), data: Type.Object({}, { additionalProperties: true }) })
    const answers: Record<string, unknown> = {
      '/good': { data: [{ id: 1, data: { free: true } }] },
      '/top': { data: [], more: 1 },
      '/deep': { data: [{ id: 1, data: {}, password: 'x' }] },
      '/missing': { data: [{ id: 1 }] },
    }
    for (const [url, answer] of Object.entries(answers)) {
      app.get(url, { schema: { response: { 200: Type.Object({ data: Type.Array(Item) }) } } }, async () => answer)
    }
    app.get('/bare', async () => ({}))
    app.get('/error', async (_request, reply) => reply.code(422).send({ message: 'no', code: 'x', stack: 'y' }))
    const check = checkAnswers(app)
    for (const url of [...Object.keys(answers), '/bare', '/error']) await app.inject(url)
    await app.close()
    assert.equal(check.checked.size, 6)
    assert.deepEqual(
      check.violations.map(text => text.split(' {')[0]!.replace(/ \[.*/, '')),
      [
        'GET /top 200: data must NOT have additional properties',
        'GET /deep 200: data/data/0 must NOT have additional properties',
        "GET /missing 200: data/data/0 must have required property 'data'",
        'GET /bare 200: the route declares no schema',
        'GET /error 422: data must NOT have additional properties',
      ],
    )
  })
})
