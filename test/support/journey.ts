import assert from 'node:assert/strict'
import { openStream } from './event-stream.ts'
import type { Service } from './service.ts'
import type { SmtpServer } from './smtp.ts'

/** Returns the code in the mail number `count` to an address. */
export type ReadCode = (email: string, count?: number) => Promise<string>

export function createClient(address: string) {
  return async (
    method: string,
    path: string,
    { token, body, type }: { token?: string; body?: unknown; type?: string } = {},
  ) => {
    const response = await fetch(address + path, {
      method,
      headers: {
        ...(token && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && { 'content-type': type ?? 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return { status: response.status, body: (await response.json()) as any }
  }
}

/**
 * Sends the HTTP requests of two users: sign-ups, an event, a stream, the inbox, a deletion, a refresh and a logout.
 */
export async function runJourney(service: Service, intakeKey: string, readCode: ReadCode): Promise<void> {
  const call = createClient(service.address)

  async function signUp(email: string, first_name: string): Promise<{ id: number; token: string }> {
    const asked = await call('POST', '/api/v1/auth/request-otp', {
      body: { email, first_name, last_name: 'Durand', accept_cgu: true },
    })
    assert.equal(asked.status, 200)
    const verified = await call('POST', '/api/v1/auth/verify-otp', { body: { email, code: await readCode(email) } })
    assert.deepEqual([verified.status, verified.body.is_new_user], [200, true])
    const me = await call('GET', '/api/v1/auth/me', { token: verified.body.access_token })
    return { id: me.body.data.id, token: verified.body.access_token }
  }

  const marie = await signUp('marie@example.com', 'Marie')
  const paul = await signUp('paul@example.com', 'Paul')

  const levels = await call('GET', '/api/v1/game-levels')
  const chosen = await call('POST', '/api/v1/auth/level-assessment', {
    token: marie.token,
    body: { game_level_id: levels.body.data[3].id },
  })
  assert.deepEqual(chosen.body.data.game_level, levels.body.data[3])

  const stream = await openStream(service.address, marie.token)
  assert.equal((await stream.next()).event, 'sync')
  const reported = await call('POST', '/internal/v1/events', {
    token: intakeKey,
    type: 'application/cloudevents+json',
    body: {
      specversion: '1.0',
      id: 'fact-1',
      source: '/games',
      type: 'game_joined',
      time: new Date().toISOString(),
      data: {
        game_id: 42,
        creator_id: marie.id,
        player_ids: [marie.id, paul.id],
        actor_id: paul.id,
        starts_at: new Date(Date.now() + 3 * 86_400_000).toISOString(),
      },
    },
  })
  assert.deepEqual([reported.status, reported.body], [202, { id: 'fact-1', status: 'accepted', notifications: 1 }])

  const streamed = await stream.next()
  assert.deepEqual([streamed.event, streamed.data.title], ['notification', 'Un joueur a rejoint la partie'])
  stream.close()

  const page = await call('GET', '/api/v1/notifications', { token: marie.token })
  assert.equal(page.body.data.length, 1)
  const [notification] = page.body.data
  assert.equal(notification.title, 'Un joueur a rejoint la partie')
  assert.match(notification.message, /^Paul a rejoint la partie du .* \(2\/4\)\.$/)
  assert.equal((await call('POST', `/api/v1/notifications/${notification.id}/read`, { token: paul.token })).status, 403)
  const read = await call('POST', `/api/v1/notifications/${notification.id}/read`, { token: marie.token })
  assert.equal(read.body.data.is_read, true)
  const count = await call('GET', '/api/v1/notifications/unread-count', { token: marie.token })
  assert.deepEqual(count.body, { unread_count: 0 })

  await call('POST', '/api/v1/auth/request-otp', { token: paul.token, body: { email: 'paul@example.com' } })
  const code = await readCode('paul@example.com', 2)
  assert.equal((await call('DELETE', '/api/v1/auth/me', { token: paul.token, body: { code } })).status, 200)
  const [anonymous] = (await call('GET', '/api/v1/notifications', { token: marie.token })).body.data
  assert.match(anonymous.message, /^Un joueur a rejoint la partie du /)
  assert.equal((await call('DELETE', `/api/v1/notifications/${notification.id}`, { token: marie.token })).status, 200)

  const refreshed = await call('POST', '/api/v1/auth/refresh', { token: marie.token })
  assert.equal(refreshed.status, 200)
  const token = refreshed.body.access_token
  assert.equal((await call('POST', '/api/v1/auth/logout', { token })).status, 200)
  assert.equal((await call('GET', '/api/v1/auth/me', { token })).status, 401)
}

/** Returns a function that waits for a mail to an address and returns its code. */
export function readCodeFrom(smtp: SmtpServer): ReadCode {
  return async (email, count = 1) => {
    const mails = () => smtp.mails.filter(mail => mail.to.includes(email))
    await smtp.until(() => mails().length >= count)
    return /^\d{4}$/m.exec(mails().at(-1)!.parsed.text!)![0]
  }
}
