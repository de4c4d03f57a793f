import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { connect, type Database } from '../src/db/sql.ts'
import { INTAKE_KEY, settingsFor } from './support/app.ts'
import { type TestDatabase, testDatabase } from './support/database.ts'
import { type FakeClock, fakeClock, skipWithoutFaketime } from './support/faketime.ts'
import { post } from './support/load.ts'
import { newEmail, profile, readPayload } from './support/scenario.ts'
import { courtside, readMailbox, type Service, startService } from './support/service.ts'
import { type SmtpServer, smtpServer } from './support/smtp.ts'
import { waitUntil } from './support/wait-until.ts'

// The service follows the clock of the database, so the test moves both clocks. TZ, the time zone of the process,
// differs from TIMEZONE.
describe('a clock that moves', { skip: skipWithoutFaketime, timeout: 120_000 }, () => {
  let clock: FakeClock
  let postgres: { url: string; stop(): Promise<void> }
  let sql: Database
  let smtp: SmtpServer
  let service: Service

  before(async () => {
    clock = await fakeClock()
    postgres = await clock.startPostgres()
    smtp = await smtpServer()
    service = await startService({ ...settingsFor(postgres.url, smtp.url), TZ: 'Asia/Tokyo', ...clock.env })
    sql = connect(postgres.url)
  })
  after(async () => {
    assert.equal(await service.stop(), 0)
    await sql.close()
    await smtp.close()
    await postgres.stop()
    await clock.remove()
  })

  /** Moves both clocks. Waits until `GET /auth/me` has a status which shows that the service uses the new time. */
  async function moveTo(offset: string, token: string, status: 200 | 401): Promise<void> {
    await clock.moveTo(offset)
    await waitUntil(async () => (await call('GET', '/api/v1/auth/me', token)).status === status)
  }

  async function call(method: string, path: string, token: string) {
    const response = await fetch(service.address + path, { method, headers: { authorization: `Bearer ${token}` } })
    return { status: response.status, body: (await response.json()) as any }
  }

  test('tokens and reminders follow a moved clock, and no reminder is sent twice if the clock moves back', async () => {
    let token = await signUp(service, smtp)
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

    await moveTo('+61m', token, 401)
    token = (await call('POST', '/api/v1/auth/refresh', token)).body.access_token
    const listTypes = async (): Promise<string[]> =>
      (await call('GET', '/api/v1/notifications', token)).body.data.map((row: { type: string }) => row.type)
    await waitUntil(async () => (await listTypes()).length > 0)
    assert.deepEqual(await listTypes(), ['game_reminder'])

    // The service refuses a token that was issued more than a minute in the future.
    await moveTo('+59m', token, 401)
    await moveTo('+90m', token, 200)
    await moveTo('+181m', token, 401)
    token = (await call('POST', '/api/v1/auth/refresh', token)).body.access_token
    await waitUntil(async () => (await listTypes()).length > 1)
    assert.deepEqual(await listTypes(), ['game_started', 'game_reminder'])

    // When the service announces a due time, it deletes the row from `game_schedule`. So it sends no reminder again
    // when the clock moves back and then forward.
    await moveTo('+0', token, 401)
    await moveTo('+182m', token, 200)
    const [row] = await sql<{ count: number }>`select count(*) from game_schedule`
    assert.equal(row!.count, 0)
    assert.equal((await listTypes()).length, 2)
  })
})

/** Signs up with a new address. @returns the token */
async function signUp(service: Service, smtp: SmtpServer): Promise<string> {
  const email = newEmail()
  await post([service], '/api/v1/auth/request-otp', profile(email))
  await smtp.until(() => smtp.mails.some(mail => mail.to.includes(email)))
  const code = /^\d{4}$/m.exec(smtp.mails.at(-1)!.parsed.text!)![0]
  const answer = await post([service], '/api/v1/auth/verify-otp', { email, code })
  return ((await answer!.json()) as { access_token: string }).access_token
}

test('after the clock of the database has moved by 3 min, running processes accept the tokens of new ones within seconds', {
  skip: skipWithoutFaketime,
  timeout: 120_000,
}, async t => {
  const closers: (() => Promise<unknown>)[] = []
  t.after(async () => {
    for (const close of closers.reverse()) await close()
  })
  const clock = await fakeClock()
  closers.push(clock.remove)
  const postgres = await clock.startPostgres()
  closers.push(postgres.stop)
  const smtp = await smtpServer()
  closers.push(smtp.close)
  const settings = settingsFor(postgres.url, smtp.url)
  const running = await startService({ ...settings, ROLE: 'web' })
  closers.push(() => running.stop())
  await clock.moveTo('+3m')
  const started = await startService(settings)
  closers.push(() => started.stop())
  const headers = { authorization: `Bearer ${await signUp(started, smtp)}` }
  await waitUntil(async () => (await fetch(`${running.address}/api/v1/auth/me`, { headers })).status === 200, 20_000)
  const refreshed = await fetch(`${running.address}/api/v1/auth/refresh`, { method: 'POST', headers })
  assert.equal(refreshed.status, 200)
})

describe('a machine whose clock is wrong', { skip: skipWithoutFaketime, timeout: 120_000 }, () => {
  let clock: FakeClock
  let database: TestDatabase
  let service: Service

  before(async () => {
    clock = await fakeClock('+1d')
    database = await testDatabase()
    service = await startService({ ...settingsFor(database.url), ...clock.env })
  })
  after(async () => {
    assert.equal(await service.stop(), 0)
    await database.drop()
    await clock.remove()
  })

  const readWarning = async () => ((await (await fetch(`${service.address}/readyz`)).json()) as any).warning

  /** Asserts that a time in seconds is the time of the database, which has the real clock. */
  const assertIsNow = (seconds: number) => {
    const difference = Math.abs(seconds - Date.now() / 1000)
    assert.ok(difference < 30, `the time differs by ${difference} s`)
  }

  /** Signs up with a new address. @returns the address and the token */
  async function signUp() {
    const email = newEmail()
    await post([service], '/api/v1/auth/request-otp', profile(email))
    let code: string | undefined
    await waitUntil(async () => {
      const mail = (await readMailbox(service)).find(({ to }) => to === email)
      code = /^\d{4}$/m.exec(mail?.text ?? '')?.[0]
      return code !== undefined
    })
    const answer = await post([service], '/api/v1/auth/verify-otp', { email, code })
    return { email, token: ((await answer!.json()) as { access_token: string }).access_token }
  }

  test('codes and tokens have the time of the database, also right after the clock of the machine was set', async () => {
    for (const offset of ['+1d', '-2d', '+30d']) {
      await clock.moveTo(offset)
      const { email, token } = await signUp()
      assertIsNow(readPayload(token).iat)
      const [row] = await database.sql<{ ms: number }>`
        select extract(epoch from sent_at)::float8 as ms from sign_in_address where email = ${email}`
      assertIsNow(row!.ms)
    }
  })

  test('/readyz contains a warning while the clocks differ by more than 5 s', async () => {
    await clock.moveTo('-6s')
    await waitUntil(async () => (await readWarning()) !== undefined)
    assert.match(await readWarning(), /the clock of this machine and the clock of the database differ by more than 5 s/)
    await clock.moveTo('+1s')
    await waitUntil(async () => (await readWarning()) === undefined)
  })

  test('with a wrong clock of the machine, `prune` deletes no running session, and `users sign-out` stores the real time', async () => {
    await clock.moveTo('+4000d')
    const settings = { ...settingsFor(database.url), ...clock.env }
    const runJson = async (...args: string[]) => {
      const { code, output, errors } = await courtside([...args, '--json'], settings)
      assert.equal(code, 0, errors)
      return JSON.parse(output)
    }
    const { email } = await signUp()
    assert.deepEqual((await runJson('prune')).session, 0)
    assert.deepEqual(await runJson('users', 'sign-out', email), { ended: 1 })
    const [session] = await database.sql<{ ms: number }>`
      select extract(epoch from ended_at)::float8 as ms from session
      join app_user on app_user.id = session.user_id where email = ${email}`
    assertIsNow(session!.ms)
  })
})
