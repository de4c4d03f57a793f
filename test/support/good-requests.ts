import assert from 'node:assert/strict'
import { Notification } from '../../src/notifications/schema.ts'
import { type Harness, INTAKE_KEY } from './app.ts'
import { findUndeclared } from './declared-answers.ts'
import type { Answer, ListedOperation } from './documented.ts'
import { listen, openStream } from './event-stream.ts'
import { makeNotifications, makeUser } from './factories.ts'
import { cloudEvent, newGameId, sendBatch } from './games.ts'
import { newSubscription } from './push.ts'
import { newEmail, profile, queuedCode, readPayload } from './scenario.ts'

/** Sends a request to an operation. `id` replaces the placeholder `{id}` in the operation's path. */
type Send = (options?: { id?: number; token?: string; body?: unknown }) => Promise<Answer>

/**
 * Good requests to every operation of the API. A property name consists of the method and the path of an operation, as
 * in the OpenAPI document. A new operation needs an entry here.
 */
export const GOOD_REQUESTS: Record<string, (h: Harness, send: Send) => Promise<Answer | Answer[]>> = {
  'POST /api/v1/auth/request-otp': (_h, send) => send({ body: profile(newEmail()) }),
  'POST /api/v1/auth/verify-otp': async (h, send) => {
    const email = newEmail()
    await h.call('POST', '/api/v1/auth/request-otp', { body: profile(email) })
    return send({ body: { email, code: await queuedCode(h, email) } })
  },
  'POST /api/v1/auth/refresh': async (h, send) => send({ token: (await makeUser(h)).token }),
  'POST /api/v1/auth/logout': async (h, send) => send({ token: (await makeUser(h)).token }),
  'GET /api/v1/auth/me': async (h, send) => {
    const { token } = await makeUser(h)
    const withoutLevel = await send({ token })
    await h.call('POST', '/api/v1/auth/level-assessment', { token, body: { game_level_id: 1 } })
    return [withoutLevel, await send({ token })]
  },
  'DELETE /api/v1/auth/me': async (h, send) => {
    const { email, token } = await makeUser(h)
    await h.call('POST', '/api/v1/auth/request-otp', { token, body: { email } })
    return send({ token, body: { code: await queuedCode(h, email, readPayload(token).sid) } })
  },
  'POST /api/v1/auth/level-assessment': async (h, send) => {
    return send({ token: (await makeUser(h)).token, body: { game_level_id: 1 } })
  },
  'GET /api/v1/game-levels': (_h, send) => send(),
  'GET /api/v1/notifications': async (h, send) => {
    const { id, token } = await makeUser(h)
    await makeNotifications(h, id, 3)
    return send({ token })
  },
  'GET /api/v1/notifications/unread-count': async (h, send) => send({ token: (await makeUser(h)).token }),
  'POST /api/v1/notifications/{id}/read': async (h, send) => send(await makeOwner(h)),
  'POST /api/v1/notifications/read-all': async (h, send) => send({ token: (await makeUser(h)).token }),
  'DELETE /api/v1/notifications/{id}': async (h, send) => send(await makeOwner(h)),
  'GET /api/v1/notifications/stream': readStream,
  'GET /api/v1/notification-preferences': async (h, send) => send({ token: (await makeUser(h)).token }),
  'PATCH /api/v1/notification-preferences': async (h, send) => {
    return send({ token: (await makeUser(h)).token, body: { types: { game_joined: { push: false } } } })
  },
  'GET /api/v1/push/key': (_h, send) => send(),
  'PUT /api/v1/push/subscriptions': async (h, send) =>
    send({ token: (await makeUser(h)).token, body: { ...newSubscription(), time_zone: 'Europe/Paris' } }),
  'DELETE /api/v1/push/subscriptions': async (h, send) => {
    const { endpoint } = newSubscription()
    return send({ token: (await makeUser(h)).token, body: { endpoint } })
  },
  'POST /internal/v1/events': async (h, send) => {
    const { id } = await makeUser(h)
    const event = cloudEvent('game_created', { game_id: newGameId(), creator_id: id, player_ids: [id] })
    const accepted = await send({ token: INTAKE_KEY, body: event })
    const duplicate = await send({ token: INTAKE_KEY, body: event })
    return [accepted, duplicate, await sendBatch(h, [event, { id: 'no event' }])]
  },
}

/** Sends the good requests of an operation. @param operation a property name of `GOOD_REQUESTS` */
export async function sendGoodRequests(h: Harness, operation: string): Promise<Answer[]> {
  const [method, path] = operation.split(' ') as [string, string]
  const send: Send = ({ id, ...options } = {}) => h.call(method, path.replace('{id}', String(id)), options)
  const goodRequest = GOOD_REQUESTS[operation]
  assert.ok(goodRequest, `GOOD_REQUESTS has no entry for ${operation}`)
  return [await goodRequest(h, send)].flat()
}

/** Returns the credentials that an operation requires: the intake key, the given user token, or none. */
export function credentials({ operation }: ListedOperation, token: string): string | undefined {
  const [scheme = {}] = operation.security
  if ('intakeKey' in scheme) return INTAKE_KEY
  return 'bearer' in scheme ? token : undefined
}

/** Creates a user with one notification. @returns the id of the notification, and the token of the user */
export async function makeOwner(h: Harness): Promise<{ id: number; token: string }> {
  const { id: userId, token } = await makeUser(h)
  const [id] = await makeNotifications(h, userId, 1)
  return { id: id!, token }
}

/** Reads one event of each type from a stream, and compares the data of the event with the declared members. */
async function readStream(h: Harness): Promise<Answer> {
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
  return { status: stream.response.statusCode!, headers: stream.response.headers, text: '' }
}
