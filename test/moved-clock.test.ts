import assert from 'node:assert/strict'
import { globSync } from 'node:fs'
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { INTAKE_KEY, settingsFor } from './support/app.ts'
import { type TestDatabase, testDatabase } from './support/database.ts'
import { post } from './support/load.ts'
import { newEmail, profile } from './support/scenario.ts'
import { type Service, startService } from './support/service.ts'
import { type SmtpServer, smtpServer } from './support/smtp.ts'
import { waitUntil } from './support/wait-until.ts'

const [libfaketime] = globSync('/usr/lib/*/faketime/libfaketime.so.1')
const skip = !libfaketime && !process.env.CI && 'libfaketime is not installed (apt-get install libfaketime)'

// The test moves the clock of a running service. TZ, the time zone of the process, differs from TIMEZONE.
describe('a clock that moves', { skip, timeout: 60_000 }, () => {
  let folder: string
  let database: TestDatabase
  let smtp: SmtpServer
  let service: Service

  before(async () => {
    assert.ok(libfaketime, 'CI needs libfaketime (apt-get install libfaketime)')
    folder = await mkdtemp(join(tmpdir(), 'courtside-clock-'))
    await moveTo('+0')
    database = await testDatabase()
    smtp = await smtpServer()
    service = await startService({
      ...settingsFor(database.url, smtp.url),
      TZ: 'Asia/Tokyo',
      LD_PRELOAD: libfaketime,
      FAKETIME_TIMESTAMP_FILE: join(folder, 'clock'),
      FAKETIME_NO_CACHE: '1',
      // Without this setting, every timer would fire at once when the clock moves.
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    })
  })
  after(async () => {
    assert.equal(await service.stop(), 0)
    await smtp.close()
    await database.drop()
    await rm(folder, { recursive: true })
  })

  /** Moves the clock of the service. @param offset the difference from the real time, such as `+61m` */
  async function moveTo(offset: string): Promise<void> {
    // libfaketime reads the file `clock` whenever the service asks for the time. A rename replaces the file atomically,
    // so libfaketime never reads a half-written file.
    await writeFile(join(folder, 'next'), offset)
    await rename(join(folder, 'next'), join(folder, 'clock'))
  }

  async function call(method: string, path: string, token: string) {
    const response = await fetch(service.address + path, { method, headers: { authorization: `Bearer ${token}` } })
    return { status: response.status, body: (await response.json()) as any }
  }

  async function signUp(): Promise<string> {
    const email = newEmail()
    await post([service], '/api/v1/auth/request-otp', profile(email))
    await smtp.until(() => smtp.mails.some(mail => mail.to.includes(email)))
    const code = /^\d{4}$/m.exec(smtp.mails.at(-1)!.parsed.text!)![0]
    const answer = await post([service], '/api/v1/auth/verify-otp', { email, code })
    return ((await answer!.json()) as { access_token: string }).access_token
  }

  test('tokens and reminders follow a moved clock, and no reminder is sent twice if the clock moves back', async () => {
    let token = await signUp()
    const { id } = (await call('GET', '/api/v1/auth/me', token)).body.data
    const data = {
      game_id: 1,
      creator_id: id,
      player_ids: [id],
      starts_at: new Date(Date.now() + 3 * 3_600_000).toISOString(),
    }
    const event = { specversion: '1.0', id: '1', source: '/clock', type: 'game_created', data }
    const time = new Date().toISOString()
    assert.equal((await post([service], '/internal/v1/events', { ...event, time }, INTAKE_KEY))!.status, 202)

    await moveTo('+61m')
    assert.equal((await call('GET', '/api/v1/auth/me', token)).status, 401)
    token = (await call('POST', '/api/v1/auth/refresh', token)).body.access_token
    const listTypes = async (): Promise<string[]> =>
      (await call('GET', '/api/v1/notifications', token)).body.data.map((row: { type: string }) => row.type)
    await waitUntil(async () => (await listTypes()).length > 0)
    assert.deepEqual(await listTypes(), ['game_reminder'])

    await moveTo('+59m')
    await moveTo('+181m')
    token = (await call('POST', '/api/v1/auth/refresh', token)).body.access_token
    await waitUntil(async () => (await listTypes()).length > 1)
    assert.deepEqual(await listTypes(), ['game_started', 'game_reminder'])

    // When the service announces a due time, it deletes the row from `game_schedule`. So it sends no reminder again
    // when the clock moves back and then forward.
    await moveTo('+0')
    await moveTo('+182m')
    const [row] = await database.sql<{ count: number }>`select count(*) from game_schedule`
    assert.equal(row!.count, 0)
    assert.equal((await listTypes()).length, 2)
  })
})
