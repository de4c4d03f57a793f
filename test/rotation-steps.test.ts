// docs/operations.md rotates JWT_SECRET over several processes in three steps. No step may lose a mail or a session.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { settingsFor } from './support/app.ts'
import { type TestDatabase, testDatabase } from './support/database.ts'
import { post } from './support/load.ts'
import { newEmail, profile } from './support/scenario.ts'
import { type Service, startService } from './support/service.ts'
import { type SmtpServer, smtpServer } from './support/smtp.ts'

const OLD = randomBytes(32).toString('base64url')
const NEW = randomBytes(32).toString('base64url')

/** The values of JWT_SECRET, one after the other. */
const STEPS = [OLD, `${OLD},${NEW}`, `${NEW},${OLD}`, NEW]

describe('rotation of JWT_SECRET over two processes', { timeout: 240_000 }, () => {
  let database: TestDatabase
  let smtp: SmtpServer
  const services: Service[] = []
  const started: Service[] = []
  const tokens: string[] = []

  before(async () => {
    database = await testDatabase()
    smtp = await smtpServer()
  })
  after(async () => {
    await Promise.all(services.map(service => service.stop()))
    await smtp.close()
    await database.drop()
  })

  async function start(secrets: string): Promise<Service> {
    const limits = { THROTTLE_REQUEST_OTP: '1000', THROTTLE_VERIFY_OTP: '1000' }
    const service = await startService({ ...settingsFor(database.url, smtp.url), ...limits, JWT_SECRET: secrets })
    started.push(service)
    return service
  }

  async function requestCode(service: Service): Promise<string> {
    const email = newEmail()
    const answer = await post([service], '/api/v1/auth/request-otp', profile(email))
    assert.equal(answer?.status, 200)
    return email
  }

  /** Waits for the mail with the code, and types the code at `service`. Adds the token to `tokens`. */
  async function verifyCode(service: Service, email: string): Promise<void> {
    const findMail = () => smtp.mails.find(mail => mail.to.includes(email))
    await smtp.until(() => findMail() !== undefined)
    const code = /^\d{4}$/m.exec(findMail()!.parsed.text!)![0]
    const answer = await post([service], '/api/v1/auth/verify-otp', { email, code })
    assert.equal(answer?.status, 200)
    tokens.push(((await answer!.json()) as { access_token: string }).access_token)
  }

  async function getMeStatus(service: Service, token: string): Promise<number> {
    return (await fetch(`${service.address}/api/v1/auth/me`, { headers: { authorization: `Bearer ${token}` } })).status
  }

  async function renew(service: Service, token: string): Promise<string> {
    const answer = await post([service], '/api/v1/auth/refresh', {}, token)
    assert.equal(answer?.status, 200)
    return ((await answer!.json()) as { access_token: string }).access_token
  }

  /** Signs new users in, and refreshes every session at one process and uses it at the other, in both directions. */
  async function assertNothingIsLost(): Promise<void> {
    const [first, second] = services as [Service, Service]
    for (const [issuer, other] of [
      [first, second],
      [second, first],
    ] as const) {
      await verifyCode(other, await requestCode(issuer))
      for (const [index, token] of tokens.entries()) {
        const renewed = await renew(issuer, token)
        for (const service of [other, issuer]) assert.equal(await getMeStatus(service, renewed), 200)
        tokens[index] = await renew(other, renewed)
        for (const service of [issuer, other]) assert.equal(await getMeStatus(service, tokens[index]!), 200)
      }
    }
  }

  test('the steps `old,new`, `new,old` and `new`, one process after the other, lose no mail and no session', async () => {
    services.push(await start(STEPS[0]!), await start(STEPS[0]!))
    await assertNothingIsLost()
    for (const secrets of STEPS.slice(1)) {
      for (const index of services.keys()) {
        // While the mail server refuses connections, the mail of this code waits in the outbox. So another process, or
        // this process after its restart, must read the sealed code.
        smtp.mode = 'refuse'
        const waiting = await requestCode(services[index]!)
        await services[index]!.stop()
        services[index] = await start(secrets)
        smtp.mode = 'accept'
        await verifyCode(services[1 - index]!, waiting)
        await assertNothingIsLost()
      }
    }
    assert.equal(tokens.length, 2 + 6 * 3)
    const [row] = await database.sql<{ ended: number }>`select count(ended_at) as ended from session`
    assert.equal(row!.ended, 0)
    // A process that cannot open a sealed code or the sealed key of the networks names JWT_SECRET in its log.
    assert.deepEqual(
      started.flatMap(service => service.lines.filter(line => line.includes('JWT_SECRET'))),
      [],
    )
  })
})
