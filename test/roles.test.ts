import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { INTAKE_KEY, settingsFor } from './support/app.ts'
import { type TestDatabase, testDatabase } from './support/database.ts'
import { profile } from './support/scenario.ts'
import { type Service, startService } from './support/service.ts'
import { type SmtpServer, smtpServer } from './support/smtp.ts'

const METRICS_TOKEN = 'Qm4tWz7rKx2vNp9s'

suite('ROLE in real processes', { timeout: 60_000 }, () => {
  let database: TestDatabase
  let smtp: SmtpServer
  const services: Service[] = []

  async function start(role: string): Promise<Service> {
    const service = await startService({
      ROLE: role,
      ...settingsFor(database.url, smtp.url),
      METRICS_TOKEN,
      LOG_LEVEL: 'debug',
    })
    services.push(service)
    return service
  }

  /** Counts the database sessions of workers. A process without a worker has no such session. */
  async function countWorkerSessions(): Promise<number> {
    const [row] = await database.sql<{ count: number }>`
      select count(*) from pg_stat_activity
      where datname = current_database() and application_name = 'courtside-worker'`
    return row!.count
  }

  function requestCode(service: Service, email: string) {
    return fetch(`${service.address}/api/v1/auth/request-otp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(profile(email)),
    })
  }

  before(async () => {
    database = await testDatabase()
    smtp = await smtpServer()
  })
  after(async () => {
    await Promise.all(services.map(service => service.stop()))
    await smtp.close()
    await database.drop()
  })

  test('a web node serves the API but sends no mail, and a worker sends the mail but serves only health and metrics', async () => {
    const web = await start('web')
    assert.equal((await requestCode(web, 'zoe@example.com')).status, 200)
    assert.equal(await countWorkerSessions(), 0)
    assert.equal(smtp.seen.connections, 0)

    const worker = await start('worker')
    await smtp.until(() => smtp.mails.length === 1)
    assert.deepEqual(smtp.mails[0]!.to, ['zoe@example.com'])
    assert.ok((await countWorkerSessions()) > 0)

    const bearer = { authorization: `Bearer ${METRICS_TOKEN}` }
    for (const { address } of [web, worker]) {
      assert.equal((await fetch(`${address}/healthz`)).status, 200)
      assert.equal((await fetch(`${address}/readyz`)).status, 200)
      assert.equal((await fetch(`${address}/metrics`)).status, 401)
      assert.equal((await fetch(`${address}/metrics`, { headers: bearer })).status, 200)
    }
    for (const path of ['/api/v1/game-levels', '/api/v1/openapi.json', '/docs', '/', '/api/v1/auth/me']) {
      assert.equal((await fetch(worker.address + path)).status, 404, path)
    }
    assert.equal((await requestCode(worker, 'max@example.com')).status, 404)
    assert.equal(
      (await fetch(`${worker.address}/internal/v1/events`, { method: 'POST', headers: { authorization: INTAKE_KEY } }))
        .status,
      404,
    )
    assert.equal((await fetch(`${web.address}/api/v1/game-levels`)).status, 200)
    // Both nodes report that MAIL_FROM is not set.
    for (const { lines } of [web, worker]) assert.ok(lines.some(line => line.includes('MAIL_FROM is not set')))
  })

  test('a node with the role all serves the API and sends the mail', async () => {
    await Promise.all(services.splice(0).map(service => service.stop()))
    const service = await start('all')
    assert.equal((await requestCode(service, 'lea@example.com')).status, 200)
    await smtp.until(() => smtp.mails.some(mail => mail.to[0] === 'lea@example.com'))
  })
})
