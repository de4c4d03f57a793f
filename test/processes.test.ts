import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { INTAKE_KEY, settingsFor } from './support/app.ts'
import { type TestDatabase, testDatabase } from './support/database.ts'
import { openStream } from './support/event-stream.ts'
import { newEmail, otherThan, profile } from './support/scenario.ts'
import { type Service, startService } from './support/service.ts'
import { type SmtpServer, smtpServer } from './support/smtp.ts'

// Three real processes on one database: two that serve and work, one that only works.
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

  const nextTurn = () => {
    turn += 1
    return turn % 2
  }

  /** Asks one of the two that serve, by turns, or the one that is named. */
  async function call(method: string, path: string, body?: unknown, token?: string, at = nextTurn()) {
    const response = await fetch(services[at]!.address + path, {
      method,
      headers: {
        ...(token && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return { status: response.status, headers: response.headers, body: (await response.json()) as any }
  }

  async function mailedCode(email: string): Promise<string> {
    const mailsTo = () => smtp.mails.filter(mail => mail.to.includes(email))
    await smtp.until(() => mailsTo().length > 0)
    return /^\d{4}$/m.exec(mailsTo().at(-1)!.parsed.text!)![0]
  }

  async function signUp(email = newEmail()): Promise<{ email: string; token: string; id: number }> {
    await call('POST', '/api/v1/auth/request-otp', profile(email))
    const { body } = await call('POST', '/api/v1/auth/verify-otp', { email, code: await mailedCode(email) })
    const me = await call('GET', '/api/v1/auth/me', undefined, body.access_token)
    return { email, token: body.access_token, id: me.body.data.id }
  }

  test('a mail goes out once, whoever works', async () => {
    const emails = Array.from({ length: 10 }, newEmail)
    await Promise.all(emails.map(email => call('POST', '/api/v1/auth/request-otp', profile(email))))
    for (const email of emails) await mailedCode(email)
    for (const email of emails) assert.equal(smtp.mails.filter(mail => mail.to.includes(email)).length, 1)
  })

  test('the sixth attempt is refused wherever it arrives', async () => {
    const email = newEmail()
    await call('POST', '/api/v1/auth/request-otp', profile(email))
    const code = await mailedCode(email)
    for (let guess = 0; guess < 5; guess += 1) {
      assert.equal((await call('POST', '/api/v1/auth/verify-otp', { email, code: otherThan(code) })).status, 422)
    }
    for (const at of [0, 1]) {
      assert.equal((await call('POST', '/api/v1/auth/verify-otp', { email, code }, undefined, at)).status, 422)
    }
  })

  test('a token is good at both; refreshed at one it is renewed at the other', async () => {
    const { token } = await signUp()
    const answers = await Promise.all(
      [0, 1, 0, 1].map(at => call('POST', '/api/v1/auth/refresh', undefined, token, at)),
    )
    const tokens = new Set(answers.map(answer => answer.body.access_token))
    assert.equal(tokens.size, 1)
    for (const at of [0, 1])
      assert.equal((await call('GET', '/api/v1/auth/me', undefined, [...tokens][0], at)).status, 200)
  })

  test('a logout at one is soon known to the other', async () => {
    const { token } = await signUp()
    for (const at of [0, 1]) assert.equal((await call('GET', '/api/v1/auth/me', undefined, token, at)).status, 200)
    assert.equal((await call('POST', '/api/v1/auth/logout', undefined, token, 0)).status, 200)
    assert.equal((await call('GET', '/api/v1/auth/me', undefined, token, 0)).status, 401)
    while ((await call('GET', '/api/v1/auth/me', undefined, token, 1)).status !== 401);
    assert.equal((await call('POST', '/api/v1/auth/refresh', undefined, token, 1)).status, 401)
  })

  test('a fact reported to both is told once', async () => {
    const [creator, player] = [await signUp(), await signUp()]
    const event = joined('once', 3, creator, player)
    const answers = await Promise.all(
      [0, 1, 0, 1].map(at => call('POST', '/internal/v1/events', event, INTAKE_KEY, at)),
    )
    assert.deepEqual(answers.map(answer => answer.body.status).sort(), [
      'accepted',
      'duplicate',
      'duplicate',
      'duplicate',
    ])
    for (const at of [0, 1]) {
      const list = await call('GET', '/api/v1/notifications', undefined, creator.token, at)
      assert.equal(list.body.meta.total, 1)
    }
  })

  test('a stream at one tells what the other has taken in; it is left open, and holds up no stop', async () => {
    const [creator, player] = [await signUp(), await signUp()]
    const stream = await openStream(services[1]!.address, creator.token)
    assert.equal((await stream.next()).event, 'sync')
    const event = joined('streamed', 5, creator, player)
    assert.equal((await call('POST', '/internal/v1/events', event, INTAKE_KEY, 0)).status, 202)
    const told = await stream.next()
    assert.deepEqual([told.event, told.data.type], ['notification', 'game_joined'])
  })

  test('a reminder and a start are told once, whoever fires them', async () => {
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
    assert.equal((await call('POST', '/internal/v1/events', event, INTAKE_KEY)).status, 202)
    const typesOf = async (token: string): Promise<string[]> =>
      (await call('GET', '/api/v1/notifications', undefined, token)).body.data.map(
        (item: { type: string }) => item.type,
      )
    while (!(await typesOf(creator.token)).includes('game_started'));
    // Whoever else would tell it had a second's look at it too.
    while (Date.now() < started + 6_500) await typesOf(player.token)
    for (const { token } of [creator, player]) assert.deepEqual(await typesOf(token), ['game_started', 'game_reminder'])
  })

  test('a limit holds over both', async () => {
    const statuses: number[] = []
    for (let count = 0; count < 130; count += 1) {
      statuses.push((await call('POST', '/api/v1/auth/verify-otp', { email: newEmail(), code: '1234' })).status)
    }
    // Some of the minute's 60 were used above, and the window may have turned once.
    assert.ok(statuses.includes(429))
    assert.ok(statuses.filter(status => status !== 429).length <= 120)
  })

  test('the worker serves health alone', async () => {
    assert.equal((await call('GET', '/readyz', undefined, undefined, 2)).status, 200)
    assert.equal((await call('GET', '/api/v1/game-levels', undefined, undefined, 2)).status, 404)
  })
})

/** That a player has joined a game which is far away. */
function joined(id: string, game_id: number, creator: { id: number }, player: { id: number }) {
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
