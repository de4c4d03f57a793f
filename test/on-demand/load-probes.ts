// `npm run test:load` measures whether an attacker can tell from times whether an address has an account. It sends
// requests for known and unknown addresses in random order, and times each request and the requests to `/healthz` after
// it. For each probe, the AUC is the probability that a known address takes longer than an unknown one. The AUC must be
// close to 0.5. A probe that fails is repeated once with four times as many addresses.
import assert from 'node:assert/strict'
import { Agent, request as send } from 'node:http'
import { test } from 'node:test'
import { settingsFor } from '../support/app.ts'
import { testDatabase } from '../support/database.ts'
import { startService } from '../support/service.ts'
import { smtpServer } from '../support/smtp.ts'

const COUNT = Number(process.env.PROBE_COUNT ?? 500)
const MAX_DISTANCE = 0.05

type Sample = Record<string, number>

test(`the times of ${COUNT} known and ${COUNT} unknown addresses cannot be told apart`, {
  timeout: 3_600_000,
}, async t => {
  const database = await testDatabase()
  const smtp = await smtpServer()
  const service = await startService({
    ...settingsFor(database.url, smtp.url),
    THROTTLE_REQUEST_OTP: '1000000',
    THROTTLE_VERIFY_OTP: '1000000',
    GUESS_BUDGETS: 'off',
  })
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.after(async () => {
    agent.destroy()
    await service.stop('SIGKILL')
    await smtp.close()
    await database.drop()
  })
  const probe = createProbe(new URL(service.address), agent)

  async function measure(round: number, count: number): Promise<Map<string, number>> {
    await database.sql`
      insert into app_user (email, first_name, last_name, locale, terms_version, terms_accepted_at, created_at, updated_at)
      select 'k' || n || 'r' || ${round}::int || '@example.com', 'O', 'M', 'fr', '1', now(), now(), now()
      from generate_series(1, ${count}) as n`
    const names = ['k', 'u'].flatMap(kind =>
      Array.from({ length: count }, (_, index) => `${kind}${index + 1}r${round}`),
    )
    const samples = { k: [] as Sample[], u: [] as Sample[] }
    for (const name of shuffle(names)) samples[name[0] as 'k' | 'u'].push(await probe(`${name}@example.com`))
    const values = (key: string, list: Sample[]) => list.map(sample => sample[key]!)
    const keys = Object.keys(samples.k[0]!)
    return new Map(keys.map(key => [key, auc(values(key, samples.k), values(key, samples.u))]))
  }

  const isFar = (value: number) => Math.abs(value - 0.5) > MAX_DISTANCE
  for (let warmUp = 0; warmUp < 20; warmUp += 1) await probe(`warm${warmUp}@example.com`)
  const first = await measure(1, COUNT)
  console.log(`AUC ${describe(first)}`)
  const failed = [...first].filter(([, value]) => isFar(value)).map(([key]) => key)
  if (failed.length === 0) return
  const second = await measure(2, COUNT * 4)
  console.log(`AUC of the repetition ${describe(second)}`)
  for (const key of failed) assert.ok(!isFar(second.get(key)!), `${key}: ${second.get(key)}`)
})

/** Returns a function that sends the requests for one address on one connection, and returns their times. */
function createProbe({ hostname, port }: URL, agent: Agent) {
  /** Sends a request. @returns its status and its duration in milliseconds */
  function time(path: string, body?: unknown): Promise<{ status: number; ms: number }> {
    const began = performance.now()
    const method = body === undefined ? 'GET' : 'POST'
    const headers = { 'content-type': 'application/json' }
    return new Promise((resolve, reject) => {
      const sent = send({ hostname, port, path, agent, method, headers }, answer => {
        answer.resume()
        answer.on('end', () => resolve({ status: answer.statusCode!, ms: performance.now() - began }))
      })
      sent.on('error', reject)
      sent.end(body === undefined ? undefined : JSON.stringify(body))
    })
  }

  return async (email: string): Promise<Sample> => {
    const asked = await time('/api/v1/auth/request-otp', { email })
    assert.equal(asked.status, 200)
    const health: number[] = []
    for (let count = 0; count < 100; count += 1) health.push((await time('/healthz')).ms)
    const waited = await time('/api/v1/auth/request-otp', { email })
    assert.equal(waited.status, 429)
    const guessed = await time('/api/v1/auth/verify-otp', { email, code: '0000' })
    const sum = (values: number[]) => values.reduce((total, value) => total + value, 0)
    return {
      'request-otp': asked.ms,
      'sum of 25 healthz': sum(health.slice(0, 25)),
      'maximum of 25 healthz': Math.max(...health.slice(0, 25)),
      'sum of 100 healthz': sum(health),
      'maximum of 100 healthz': Math.max(...health),
      'request in a wait': waited.ms,
      guess: guessed.ms,
    }
  }
}

/** Shuffles a list in place. */
function shuffle<T>(list: T[]): T[] {
  for (let index = list.length - 1; index > 0; index -= 1) {
    const other = Math.floor(Math.random() * (index + 1))
    ;[list[index], list[other]] = [list[other]!, list[index]!]
  }
  return list
}

function describe(values: Map<string, number>): string {
  return [...values].map(([key, value]) => `${key} ${value.toFixed(3)}`).join(', ')
}

/** Returns the probability that a value of `ones` is greater than a value of `others`. Equal values count half. */
function auc(ones: number[], others: number[]): number {
  const all = [...ones.map(value => ({ value, isOne: true })), ...others.map(value => ({ value, isOne: false }))]
  all.sort((a, b) => a.value - b.value)
  let rankSum = 0
  for (let start = 0; start < all.length; ) {
    let end = start
    while (end < all.length && all[end]!.value === all[start]!.value) end += 1
    for (let index = start; index < end; index += 1) if (all[index]!.isOne) rankSum += (start + end + 1) / 2
    start = end
  }
  return (rankSum - (ones.length * (ones.length + 1)) / 2) / (ones.length * others.length)
}
