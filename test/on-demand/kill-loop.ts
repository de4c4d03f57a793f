// `npm run test:kill` runs two processes on one database, under a load of code requests and events. The test repeatedly
// kills one of the processes with SIGKILL at a random moment. No acknowledged request may be lost, and no notification
// may be stored twice.
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { connect } from '../../src/db/sql.ts'
import { settingsFor } from '../support/app.ts'
import { testDatabase } from '../support/database.ts'
import { countAnnouncements, makePlayers, post, startLoad } from '../support/load.ts'
import { startService } from '../support/service.ts'
import { smtpServer } from '../support/smtp.ts'

const ROUNDS = Number(process.env.KILL_ROUNDS ?? 30)
const TIMEOUT = { timeout: 300_000 + ROUNDS * 10_000 }
// After the load, the test fails if mails are missing and none of them arrives for this time. If a worker is killed
// while it sends a mail, another worker or the restarted worker sends this mail within 15 s.
const MAIL_MS = 15_000

describe('processes that are killed with SIGKILL', () => {
  test(`if processes are killed ${ROUNDS} times under load, no acknowledged request is lost`, TIMEOUT, async t => {
    const database = await testDatabase()
    const smtp = await smtpServer()
    const env = {
      ...settingsFor(database.url, smtp.url),
      THROTTLE_REQUEST_OTP: '1000000',
    }
    const services = await Promise.all([startService(env), startService(env)])
    // This cleanup runs even if the test fails. Without the cleanup, the remaining processes would keep the test from
    // ending.
    t.after(async () => {
      await Promise.all(services.map(service => service.stop('SIGKILL')))
      await smtp.close()
      await database.drop()
    })
    const players = await makePlayers(database.sql)

    const load = startLoad(services, players, TIMEOUT.timeout)
    for (let round = 0; round < ROUNDS; round += 1) {
      await delay(Math.random() * 700)
      const index = round % 2
      await services[index]!.stop('SIGKILL')
      services[index] = await startService(env)
    }
    await load.stop()
    const { emails, scores } = load.acknowledged

    const missing = () => {
      const mailed = new Set(smtp.mails.flatMap(mail => mail.to))
      return [...emails].filter(email => !mailed.has(email))
    }
    for (let left = missing().length, since = performance.now(); left > 0 && performance.now() - since < MAIL_MS; ) {
      await delay(100)
      if (missing().length < left) [left, since] = [missing().length, performance.now()]
    }
    assert.deepEqual(missing(), [], 'acknowledged codes that were never mailed')

    const counts = await countAnnouncements(database.sql)
    for (const id of scores) assert.equal(counts.get(id), 3, `score ${id}`)
    for (const [id, count] of counts) assert.equal(count, 3, `score ${id} has ${count} notifications`)

    const mails = Map.groupBy(smtp.mails, mail => mail.to[0]!)
    const twice = [...mails.values()].filter(all => all.length > 1).length
    t.diagnostic(`${emails.size} codes, ${scores.size} events acknowledged; ${twice} mails were sent twice`)
    // Only a mail that was being sent during a kill may be sent twice. A worker sends at most four mails at a time.
    assert.ok(twice <= ROUNDS * 4)

    for (const service of services) assert.equal(await service.stop(), 0)
  })

  test('if a process with an embedded database is killed, no acknowledged code request is lost', TIMEOUT, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'courtside-kill-'))
    const env = { DATA_DIR: join(folder, 'data'), THROTTLE_REQUEST_OTP: '1000000' }
    const asked: string[] = []
    for (let round = 0; round < Math.ceil(ROUNDS / 3); round += 1) {
      const service = await startService(env)
      const until = performance.now() + Math.random() * 500
      while (performance.now() < until) {
        const email = `e${asked.length}@example.com`
        const answer = await post([service], '/api/v1/auth/request-otp', { email })
        if (answer?.status === 200) asked.push(email)
      }
      await service.stop('SIGKILL')
    }
    const last = await startService(env)
    const { findRunningEmbedded } = await import('../../src/embedded/server.ts')
    const sql = connect((await findRunningEmbedded(env.DATA_DIR))!)
    const kept = new Set((await sql<{ email: string }>`select email from sign_in_code`).map(row => row.email))
    assert.deepEqual(
      asked.filter(email => !kept.has(email)),
      [],
    )
    await sql.close()
    assert.equal(await last.stop(), 0)
    await rm(folder, { recursive: true, force: true })
  })
})
