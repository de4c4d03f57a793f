import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { INTAKE_KEY, JWT_SECRET, settingsFor } from './support/app.ts'
import { testDatabase } from './support/database.ts'
import { courtside, readMailbox, type Service, startService } from './support/service.ts'
import { smtpServer } from './support/smtp.ts'
import { waitUntil } from './support/wait-until.ts'

type ReadCode = (email: string) => Promise<string>

function createClient(address: string) {
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

/** Sends the HTTP requests of a user, from the sign-up to the logout. @param readCode returns the mailed code */
async function runJourney(service: Service, intakeKey: string, readCode: ReadCode): Promise<void> {
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
  assert.equal((await call('DELETE', `/api/v1/notifications/${notification.id}`, { token: marie.token })).status, 200)

  const refreshed = await call('POST', '/api/v1/auth/refresh', { token: marie.token })
  assert.equal(refreshed.status, 200)
  const token = refreshed.body.access_token
  assert.equal((await call('POST', '/api/v1/auth/logout', { token })).status, 200)
  assert.equal((await call('GET', '/api/v1/auth/me', { token })).status, 401)
}

/** Asserts that the log contains no secret, no token and no e-mail address. */
function assertNothingSecretLogged(service: Service, secrets: string[]): void {
  const log = service.lines.join('\n')
  assert.notEqual(log, '')
  for (const secret of [...secrets, 'marie@example.com', 'eyJ']) assert.equal(log.includes(secret), false)
}

describe('the journey', () => {
  test('a user can sign up, read a notification and log out on a service without any settings', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'courtside-journey-'))
    const service = await startService({ DATA_DIR: dataDir })
    try {
      const intakeKey = (await readFile(service.listening.intakeKeyFile!, 'utf8')).trim()
      assert.equal((await stat(service.listening.intakeKeyFile!)).mode & 0o777, 0o600)
      const readCode: ReadCode = async email => {
        let code: string | undefined
        await waitUntil(async () => {
          const mails = await readMailbox(service)
          code = /^\d{4}$/m.exec(mails.find(mail => mail.to === email)?.text ?? '')?.[0]
          return code !== undefined
        })
        return code!
      }
      await runJourney(service, intakeKey, readCode)
      assertNothingSecretLogged(service, [intakeKey])
      assert.equal(await service.stop(), 0)

      // After a restart the account still exists, so a sign-up with the same address is refused.
      const again = await startService({ DATA_DIR: dataDir })
      const answer = await createClient(again.address)('POST', '/api/v1/auth/request-otp', {
        body: { email: 'paul@example.com', first_name: 'P', last_name: 'P', accept_cgu: true },
      })
      assert.equal(answer.status, 422)
      assert.equal(await again.stop(), 0)
    } finally {
      await service.stop()
      await rm(dataDir, { recursive: true, force: true })
    }
  })

  test('a user can sign up, read a notification and log out with an external database and a mail server', async () => {
    const database = await testDatabase()
    const smtp = await smtpServer()
    const service = await startService({
      ...settingsFor(database.url, smtp.url),
      MAIL_FROM: 'Padel Club <hello@club.example>',
    })
    const readCode: ReadCode = async email => {
      await smtp.until(() => smtp.mails.some(mail => mail.to.includes(email)))
      const mail = smtp.mails.find(mail => mail.to.includes(email))!
      assert.equal(mail.from, 'hello@club.example')
      return /^\d{4}$/m.exec(mail.parsed.text!)![0]
    }
    try {
      await runJourney(service, INTAKE_KEY, readCode)
      assert.equal((await fetch(`${service.address}/dev/mailbox.json`)).status, 404)
      assertNothingSecretLogged(service, [INTAKE_KEY, JWT_SECRET])
    } finally {
      assert.equal(await service.stop(), 0)
      await smtp.close()
      await database.drop()
    }
  })
})

describe('the command line', () => {
  test('courtside serve with faulty settings lists every fault and exits with 78', async () => {
    const { code, errors } = await courtside(['serve'], { PORT: 'x', ROLE: 'boss' })
    assert.equal(code, 78)
    assert.match(errors, /ROLE: .*\n.*PORT: /)
  })

  test('an unknown command prints the usage and exits with 64', async () => {
    const { code, errors } = await courtside(['fly'])
    assert.equal(code, 64)
    assert.match(errors, /serve/)
  })

  test('courtside secret prints 32 random bytes as base64url', async () => {
    const { output } = await courtside(['secret', '--json'])
    assert.match(JSON.parse(output).secret, /^[\w-]{43}$/)
  })

  test('if its port is in use, courtside serve exits with 1 and an error that names the port', async () => {
    const database = await testDatabase()
    const env = settingsFor(database.url)
    const service = await startService(env)
    const port = new URL(service.address).port
    const { code, output, errors } = await courtside(['serve'], { ...env, PORT: port })
    assert.equal(code, 1)
    assert.match(output + errors, new RegExp(`${port}`))
    assert.equal(await service.stop(), 0)
    await database.drop()
  })
})
