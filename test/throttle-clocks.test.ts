import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { settingsFor } from './support/app.ts'
import { type TestDatabase, testDatabase } from './support/database.ts'
import { type FakeClock, fakeClock, skipWithoutFaketime } from './support/faketime.ts'
import { newEmail } from './support/scenario.ts'
import { type Service, startService } from './support/service.ts'

describe('two processes on machines whose clocks differ', { skip: skipWithoutFaketime, timeout: 120_000 }, () => {
  let clock: FakeClock
  let database: TestDatabase
  let services: Service[]

  before(async () => {
    clock = await fakeClock()
    database = await testDatabase()
    const settings = { ...settingsFor(database.url), TRUST_PROXY: '127.0.0.1', THROTTLE_VERIFY_OTP: '10' }
    services = [await startService({ ...settings, ...clock.env }), await startService(settings)]
  })
  after(async () => {
    for (const service of services) assert.equal(await service.stop(), 0)
    await database.drop()
    await clock.remove()
  })

  for (const [index, offset] of ['+90s', '-90s', '+10m', '+1d'].entries()) {
    test(`share the limit of the throttle if the difference is ${offset}`, async () => {
      await clock.moveTo(offset)
      const statuses = []
      for (let count = 0; count < 30; count += 1) {
        const response = await fetch(`${services[count % 2]!.address}/api/v1/auth/verify-otp`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'x-forwarded-for': `198.51.${index}.1` },
          body: JSON.stringify({ email: newEmail(), code: '0000' }),
        })
        statuses.push(response.status)
        if (response.status !== 429) continue
        const wait = Number(response.headers.get('retry-after'))
        assert.ok(wait > 0 && wait <= 60, `Retry-After: ${wait}`)
        const reset = Number(response.headers.get('x-ratelimit-reset')) - Date.now() / 1000
        assert.ok(Math.abs(reset - wait) < 20, `X-RateLimit-Reset is ${reset} s ahead`)
      }
      assert.deepEqual(statuses, [...Array(10).fill(422), ...Array(20).fill(429)])
    })
  }
})
