// npm run test:kill: two real processes on one database, one of them killed with -9 at a random moment, again and again,
// while people ask for codes and facts are reported. Nothing acknowledged is lost, nothing is told twice.
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { connect } from '../../src/db/sql.ts'
import { INTAKE_KEY, JWT_SECRET } from '../support/app.ts'
import { testDatabase } from '../support/database.ts'
import { type Service, startService } from '../support/service.ts'
import { smtpServer } from '../support/smtp.ts'
import { makePlayers } from './players.ts'

const ROUNDS = Number(process.env.KILL_ROUNDS ?? 30)
// "a mail … that was being handled goes out within 15 s of a worker's being there again"
const MAIL_MS = 15_000

/** Posts until it is answered by somebody; a killed process answers nobody, and then nothing was acknowledged. */
async function post(services: Service[], path: string, body: unknown, token?: string): Promise<Response | undefined> {
  const service = services[Math.floor(Math.random() * services.length)]!
  return fetch(service.address + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(10_000),
  }).catch(() => undefined)
}

describe('kill -9', () => {
  test(`${ROUNDS} times, one of two processes under load`, async t => {
    const database = await testDatabase()
    const smtp = await smtpServer()
    const env = {
      DATABASE_URL: database.url,
      SMTP_URL: smtp.url,
      JWT_SECRET,
      INTAKE_KEYS: INTAKE_KEY,
      THROTTLE_REQUEST_OTP: '1000000',
    }
    const services = await Promise.all([startService(env), startService(env)])
    const players = await makePlayers(database.sql)

    const acknowledged = { mails: new Map<string, number>(), facts: new Set<string>() }
    let loading = true
    let count = 0

    async function load(): Promise<void> {
      while (loading) {
        count += 1
        const name = `n${count}`
        const [asked, reported] = await Promise.all([
          post(services, '/api/v1/auth/request-otp', {
            email: `${name}@example.com`,
            first_name: 'A',
            last_name: 'B',
            accept_cgu: true,
          }),
          post(services, '/internal/v1/events', scoreFact(name, players), INTAKE_KEY),
        ])
        if (asked?.status === 200) acknowledged.mails.set(`${name}@example.com`, performance.now())
        if (reported && [200, 202].includes(reported.status)) acknowledged.facts.add(name)
        await delay(5)
      }
    }

    const loads = Array.from({ length: 4 }, load)
    for (let round = 0; round < ROUNDS; round += 1) {
      await delay(Math.random() * 700)
      const index = round % 2
      await services[index]!.stop('SIGKILL')
      services[index] = await startService(env)
    }
    loading = false
    await Promise.all(loads)

    const missing = () => {
      const mailed = new Set(smtp.mails.flatMap(mail => mail.to))
      return [...acknowledged.mails.keys()].filter(email => !mailed.has(email))
    }
    const deadline = performance.now() + MAIL_MS
    while (missing().length > 0 && performance.now() < deadline) await delay(100)
    assert.deepEqual(missing(), [], 'acknowledged codes that were never mailed')

    const told = await database.sql<{ message: string; count: number }>`
      select data ->> 'score_id' as message, count(*) from notification group by 1`
    const tellings = new Map(told.map(row => [row.message, row.count]))
    for (const name of acknowledged.facts) assert.equal(tellings.get(name.slice(1)), 3, `fact ${name}`)
    for (const [id, number] of tellings) assert.equal(number, 3, `fact ${id} was told ${number} times`)

    const mails = Map.groupBy(smtp.mails, mail => mail.to[0]!)
    const twice = [...mails.values()].filter(all => all.length > 1).length
    t.diagnostic(
      `${acknowledged.mails.size} codes, ${acknowledged.facts.size} facts acknowledged; ${twice} mails went twice`,
    )
    // "sends nothing twice but mail that was in the wire": at most the four that a killed worker had in hand.
    assert.ok(twice <= ROUNDS * 4)

    for (const service of services) assert.equal(await service.stop(), 0)
    await smtp.close()
    await database.drop()
  })

  test('the process and its embedded database, in turns; the next start needs no help', async () => {
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
    const { runningEmbedded } = await import('../../src/db/embedded.ts')
    const sql = connect((await runningEmbedded(env.DATA_DIR))!)
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

function scoreFact(name: string, players: number[]) {
  return {
    specversion: '1.0',
    id: name,
    source: '/kill',
    type: 'score_submitted',
    time: '2026-01-17T18:00:00Z',
    data: {
      game_id: 1 + (Number(name.slice(1)) % 5),
      creator_id: players[0],
      player_ids: players,
      actor_id: players[0],
      score: { id: Number(name.slice(1)), sets: '6-4 6-3' },
    },
  }
}
