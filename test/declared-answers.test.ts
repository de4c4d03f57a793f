// Every answer holds the keys that its route declares, and no other.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import Fastify from 'fastify'
import { Type } from '../src/http/type.ts'
import { Notification } from '../src/notifications/schema.ts'
import { harness } from './support/app.ts'
import { checkAnswers, findUndeclared } from './support/declared-answers.ts'
import { listen, openStream } from './support/event-stream.ts'
import { makeNotifications, makeUser } from './support/factories.ts'
import { cloudEvent, newGameId, send, sendBatch } from './support/games.ts'
import { newEmail, profile, queuedCode, signUp } from './support/scenario.ts'

const METRICS_TOKEN = 'Qm4tWz7rKx2vNp9s'
const LOCAL = { host: 'localhost:3000' }

const h = harness({ METRICS_TOKEN })

type Answer = { status: number; text: string }

/** Calls each route that does not only send a file. The key is its method and pattern. */
const CALLS: Record<string, () => Promise<Answer | Answer[]>> = {
  'GET /healthz': () => h.call('GET', '/healthz'),
  'GET /readyz': () => h.call('GET', '/readyz'),
  'GET /metrics': () => h.call('GET', '/metrics', { token: METRICS_TOKEN }),
  'GET /api/v1/openapi.json': () => h.call('GET', '/api/v1/openapi.json'),
  'GET /dev/mailbox': () => h.call('GET', '/dev/mailbox', { headers: LOCAL }),
  'GET /dev/mailbox.json': async () => {
    await h.ctx.mailbox!.send({ to: 'zoe@example.com', subject: 'Code', text: '1234', html: '<p>1234</p>' })
    return h.call('GET', '/dev/mailbox.json', { headers: LOCAL })
  },
  'POST /dev/play': async () => {
    const { token } = await makeUser(h)
    return h.call('POST', '/dev/play', { token, headers: LOCAL, body: { round: 1, step: 0 } })
  },
  'POST /api/v1/auth/request-otp': () => {
    return h.call('POST', '/api/v1/auth/request-otp', { body: profile(newEmail()) })
  },
  'POST /api/v1/auth/verify-otp': async () => {
    const email = newEmail()
    await h.call('POST', '/api/v1/auth/request-otp', { body: profile(email) })
    return h.call('POST', '/api/v1/auth/verify-otp', { body: { email, code: await queuedCode(h, email) } })
  },
  'POST /api/v1/auth/refresh': async () => {
    return h.call('POST', '/api/v1/auth/refresh', { token: (await signUp(h)).token })
  },
  'POST /api/v1/auth/logout': async () => h.call('POST', '/api/v1/auth/logout', { token: (await signUp(h)).token }),
  'GET /api/v1/auth/me': async () => {
    const { token } = await signUp(h)
    const withoutLevel = await h.call('GET', '/api/v1/auth/me', { token })
    await h.call('POST', '/api/v1/auth/level-assessment', { token, body: { game_level_id: 1 } })
    return [withoutLevel, await h.call('GET', '/api/v1/auth/me', { token })]
  },
  'DELETE /api/v1/auth/me': async () => {
    const { email, token } = await signUp(h)
    h.clock.advance(60_000)
    await h.call('POST', '/api/v1/auth/request-otp', { token, body: { email } })
    const [row] = await h.database.sql<{ session_id: string | null }>`
      select session_id from sign_in_code where email = ${email}`
    const code = await queuedCode(h, email, row!.session_id)
    return h.call('DELETE', '/api/v1/auth/me', { token, body: { code } })
  },
  'POST /api/v1/auth/level-assessment': async () => {
    const { token } = await makeUser(h)
    return h.call('POST', '/api/v1/auth/level-assessment', { token, body: { game_level_id: 1 } })
  },
  'GET /api/v1/game-levels': () => h.call('GET', '/api/v1/game-levels'),
  'GET /api/v1/notifications': async () => {
    const { id, token } = await makeUser(h)
    await makeNotifications(h, id, 3)
    return h.call('GET', '/api/v1/notifications', { token })
  },
  'GET /api/v1/notifications/unread-count': async () => {
    return h.call('GET', '/api/v1/notifications/unread-count', { token: (await makeUser(h)).token })
  },
  'POST /api/v1/notifications/:id/read': async () => {
    const { id, token } = await makeUser(h)
    const [notification] = await makeNotifications(h, id, 1)
    return h.call('POST', `/api/v1/notifications/${notification}/read`, { token })
  },
  'POST /api/v1/notifications/read-all': async () => {
    return h.call('POST', '/api/v1/notifications/read-all', { token: (await makeUser(h)).token })
  },
  'DELETE /api/v1/notifications/:id': async () => {
    const { id, token } = await makeUser(h)
    const [notification] = await makeNotifications(h, id, 1)
    return h.call('DELETE', `/api/v1/notifications/${notification}`, { token })
  },
  'GET /api/v1/notifications/stream': () => readStream(),
  'POST /internal/v1/events': async () => {
    const { id } = await makeUser(h)
    const event = cloudEvent('game_created', { game_id: newGameId(), creator_id: id, player_ids: [id] })
    return [await send(h, event), await send(h, event), await sendBatch(h, [event, { id: 'no event' }])]
  },
}

/** Reads one event of each kind from a stream and compares its data with the declared keys. */
async function readStream(): Promise<Answer> {
  const { id, token } = await makeUser(h)
  const stream = await openStream(await listen(h.app), token)
  const sync = await stream.next()
  assert.deepEqual([sync.event, Object.keys(sync.data)], ['sync', ['unread_count', 'latest_id']])
  await makeNotifications(h, id, 1)
  const notification = await stream.next()
  assert.equal(notification.event, 'notification')
  assert.equal(findUndeclared(Notification, notification.data), undefined)
  const count = await stream.next()
  assert.deepEqual([count.event, Object.keys(count.data)], ['unread_count', ['unread_count']])
  stream.close()
  return { status: stream.response.statusCode!, text: '' }
}

/** Returns the method and pattern of every route, HEAD and the preflights aside. */
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
        .map(method => `${method} ${parts.join('')}`)
    })
}

suite('every answer holds exactly the declared keys', () => {
  test('each route of the service answers 2xx, and each JSON answer was compared with its schema', async () => {
    const routes = listRoutes()
    const files = routes.filter(route => /^GET \/(web\/.*|client\/.*|docs.*)?$/.test(route))
    assert.ok(files.length > 10)
    assert.deepEqual(routes.filter(route => !files.includes(route)).sort(), Object.keys(CALLS).sort())
    for (const file of files) {
      const { status, headers } = await h.call('GET', file.slice('GET '.length))
      assert.equal(status, 200, file)
      assert.doesNotMatch(headers['content-type']!, /json/, file)
    }
    for (const [route, call] of Object.entries(CALLS)) {
      for (const answer of [await call()].flat()) {
        assert.ok(answer.status >= 200 && answer.status < 300, `${route}: ${answer.status} ${answer.text}`)
      }
    }
    const withoutJson = ['GET /metrics', 'GET /dev/mailbox', 'GET /api/v1/notifications/stream']
    for (const route of Object.keys(CALLS).filter(route => !withoutJson.includes(route))) {
      assert.ok(h.answers.checked.has(`${route} 200`), `${route} was not compared`)
    }
    assert.ok(h.answers.checked.has('POST /internal/v1/events 202'))
    assert.deepEqual(h.answers.violations, [])
  })

  test('the comparison refuses an undeclared key, however deep, and an answer without a schema', async () => {
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
