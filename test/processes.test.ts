import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { INTAKE_KEY, settingsFor } from './support/app.ts'
import { type TestDatabase, testDatabase } from './support/database.ts'
import { openStream } from './support/event-stream.ts'
import { newEmail, otherThan, profile } from './support/scenario.ts'
import { type Service, startService } from './support/service.ts'
import { type SmtpServer, smtpServer } from './support/smtp.ts'
import { waitUntil } from './support/wait-until.ts'

// Three real processes share one database. Two processes have the role `all`, and one has the role `worker`.
describe('three processes', () => {
  let database: TestDatabase
  let smtp: SmtpServer
  let services: Service[]
  let turn = 0

  before(async () => {
    database = await testDatabase()
    smtp = await smtpServer()
    const env = {
      ...settingsFor(database.url, smtp.url),
      REMINDER_OFFSETS: '2s',
    }
    services = await Promise.all(
      ['all', 'all', 'worker'].map(ROLE =>
        startService({ ...env, ROLE, THROTTLE_REQUEST_OTP: '60', THROTTLE_VERIFY_OTP: '60' }),
      ),
    )
  })
  after(async () => {
    for (const service of services) assert.equal(await service.stop(), 0)
    await smtp.close()
    await database.drop()
  })

  type CallOptions = { body?: unknown; token?: string; at?: number }

  /**
   * Sends a request to the service at the index `at`. Without `at`, the function sends the requests in turn to the two
   * services with the role `all`.
   */
  async function call(method: string, path: string, { body, token, at }: CallOptions = {}) {
    turn += 1
    const response = await fetch(services[at ?? turn % 2]!.address + path, {
      method,
      headers: {
        ...(token && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return { status: response.status, headers: response.headers, body: (await response.json()) as any }
  }

  async function readMailedCode(email: string): Promise<string> {
    const mailsTo = () => smtp.mails.filter(mail => mail.to.includes(email))
    await smtp.until(() => mailsTo().length > 0)
    return /^\d{4}$/m.exec(mailsTo().at(-1)!.parsed.text!)![0]
  }

  async function signUp(email = newEmail()): Promise<{ email: string; token: string; id: number }> {
    await call('POST', '/api/v1/auth/request-otp', { body: profile(email) })
    const { body } = await call('POST', '/api/v1/auth/verify-otp', {
      body: { email, code: await readMailedCode(email) },
    })
    const me = await call('GET', '/api/v1/auth/me', { token: body.access_token })
    return { email, token: body.access_token, id: me.body.data.id }
  }

  test('if three workers run, each mail is sent exactly once', async () => {
    const emails = Array.from({ length: 10 }, newEmail)
    await Promise.all(emails.map(email => call('POST', '/api/v1/auth/request-otp', { body: profile(email) })))
    for (const email of emails) await readMailedCode(email)
    for (const email of emails) assert.equal(smtp.mails.filter(mail => mail.to.includes(email)).length, 1)
  })

  test('after five wrong guesses at a code, both processes refuse the right code', async () => {
    const email = newEmail()
    await call('POST', '/api/v1/auth/request-otp', { body: profile(email) })
    const code = await readMailedCode(email)
    for (let guess = 0; guess < 5; guess += 1) {
      assert.equal(
        (await call('POST', '/api/v1/auth/verify-otp', { body: { email, code: otherThan(code) } })).status,
        422,
      )
    }
    for (const at of [0, 1]) {
      assert.equal((await call('POST', '/api/v1/auth/verify-otp', { body: { email, code }, at })).status, 422)
    }
  })

  test('both processes accept a token, and concurrent refreshes at both processes return the same new token', async () => {
    const { token } = await signUp()
    const answers = await Promise.all([0, 1, 0, 1].map(at => call('POST', '/api/v1/auth/refresh', { token, at })))
    const tokens = new Set(answers.map(answer => answer.body.access_token))
    assert.equal(tokens.size, 1)
    for (const at of [0, 1])
      assert.equal((await call('GET', '/api/v1/auth/me', { token: [...tokens][0], at })).status, 200)
  })

  test('after a logout at one process, the other process soon refuses the token', async () => {
    const { token } = await signUp()
    for (const at of [0, 1]) assert.equal((await call('GET', '/api/v1/auth/me', { token, at })).status, 200)
    assert.equal((await call('POST', '/api/v1/auth/logout', { token, at: 0 })).status, 200)
    assert.equal((await call('GET', '/api/v1/auth/me', { token, at: 0 })).status, 401)
    await waitUntil(async () => (await call('GET', '/api/v1/auth/me', { token, at: 1 })).status === 401)
    assert.equal((await call('POST', '/api/v1/auth/refresh', { token, at: 1 })).status, 401)
  })

  test('an event that is reported to both processes is announced exactly once', async () => {
    const [creator, player] = [await signUp(), await signUp()]
    const event = joinedEvent('once', 3, creator, player)
    const answers = await Promise.all(
      [0, 1, 0, 1].map(at => call('POST', '/internal/v1/events', { body: event, token: INTAKE_KEY, at })),
    )
    assert.deepEqual(answers.map(answer => answer.body.status).sort(), [
      'accepted',
      'duplicate',
      'duplicate',
      'duplicate',
    ])
    for (const at of [0, 1]) {
      const list = await call('GET', '/api/v1/notifications', { token: creator.token, at })
      assert.equal(list.body.meta.total, 1)
    }
  })

  test('a stream delivers the notification of an event that another process received, and does not block the shutdown', async () => {
    const [creator, player] = [await signUp(), await signUp()]
    const stream = await openStream(services[1]!.address, creator.token)
    assert.equal((await stream.next()).event, 'sync')
    const event = joinedEvent('streamed', 5, creator, player)
    assert.equal((await call('POST', '/internal/v1/events', { body: event, token: INTAKE_KEY, at: 0 })).status, 202)
    const message = await stream.next()
    assert.deepEqual([message.event, message.data.type], ['notification', 'game_joined'])
  })

  test('if three processes poll for due times, each reminder and each start is announced exactly once', async () => {
    const [creator, player] = [await signUp(), await signUp()]
    const started = Date.now()
    const event = {
      specversion: '1.0',
      id: 'soon',
      source: '/three',
      type: 'game_created',
      time: new Date(started).toISOString(),
      data: {
        game_id: 4,
        creator_id: creator.id,
        player_ids: [creator.id, player.id],
        starts_at: new Date(started + 4_000).toISOString(),
      },
    }
    assert.equal((await call('POST', '/internal/v1/events', { body: event, token: INTAKE_KEY })).status, 202)
    const listTypes = async (token: string): Promise<string[]> =>
      (await call('GET', '/api/v1/notifications', { token })).body.data.map((item: { type: string }) => item.type)
    await waitUntil(async () => (await listTypes(creator.token)).includes('game_started'))
    // Each process polls once a second. The delay ends 2.5 s after the start of the game, so each process has polled at
    // least once since the start.
    await delay(started + 6_500 - Date.now())
    for (const { token } of [creator, player])
      assert.deepEqual(await listTypes(token), ['game_started', 'game_reminder'])
  })

  test('the throttle counts the requests to both processes together', async () => {
    const statuses: number[] = []
    for (let count = 0; count < 130; count += 1) {
      statuses.push(
        (await call('POST', '/api/v1/auth/verify-otp', { body: { email: newEmail(), code: '1234' } })).status,
      )
    }
    // The throttle accepts at most 60 requests a minute, including the requests of earlier tests. A new minute may
    // begin during this test, so the throttle may accept up to 120 of the 130 requests.
    assert.ok(statuses.includes(429))
    assert.ok(statuses.filter(status => status !== 429).length <= 120)
  })

  test('the worker answers GET /readyz with 200 and requests to the API with 404', async () => {
    assert.equal((await call('GET', '/readyz', { at: 2 })).status, 200)
    assert.equal((await call('GET', '/api/v1/game-levels', { at: 2 })).status, 404)
  })
})

/** Returns a `game_joined` event for a game in the far future. */
function joinedEvent(id: string, game_id: number, creator: { id: number }, player: { id: number }) {
  return {
    specversion: '1.0',
    id,
    source: '/three',
    type: 'game_joined',
    time: new Date().toISOString(),
    data: {
      game_id,
      creator_id: creator.id,
      player_ids: [creator.id, player.id],
      actor_id: player.id,
      starts_at: '2040-01-01T18:00:00Z',
    },
  }
}
