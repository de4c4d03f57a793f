// `npm run test:load` sends a flood of sign-ups to a service whose mail server needs 250 ms for each mail. The mails to
// accounts must leave within 5 s in spite of the flood.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { settingsFor } from '../support/app.ts'
import { testDatabase } from '../support/database.ts'
import { startService } from '../support/service.ts'
import { smtpServer } from '../support/smtp.ts'
import { waitUntil } from '../support/wait-until.ts'

const SIGN_UPS = Number(process.env.FLOOD_SIGN_UPS ?? 15_000)
const OWNERS = 12
const MAX_DELAY_MS = 5_000

// The limits of sign-ups refuse most of the second flood, because an installation accepts 600 an hour.
const FLOODS = [
  { from: 'one /48', limits: 'off', client: (count: number) => `2001:db8:7:${(count % 300).toString(16)}::1` },
  { from: '3000 networks', limits: undefined, client: (count: number) => `2001:db8:${(count % 3000).toString(16)}::1` },
]

for (const { from, limits, client } of FLOODS) {
  test(
    `beside ${SIGN_UPS} sign-ups from ${from}, the mails to ${OWNERS} accounts leave within 5 s`,
    {
      timeout: 600_000,
    },
    t => measure(t, limits, client),
  )
}

async function measure(
  t: TestContext,
  limits: string | undefined,
  findClient: (count: number) => string,
): Promise<void> {
  const database = await testDatabase()
  const smtp = await smtpServer('slow')
  const service = await startService({
    ...settingsFor(database.url, smtp.url),
    THROTTLE_REQUEST_OTP: '1000000',
    ...(limits !== undefined && { SIGN_UP_LIMITS: limits }),
    TRUST_PROXY: '127.0.0.1',
  })
  t.after(async () => {
    await service.stop('SIGKILL')
    await smtp.close()
    await database.drop()
  })
  await database.sql`
    insert into app_user (email, first_name, last_name, locale, terms_version, terms_accepted_at, created_at, updated_at)
    select 'owner' || n || '@example.com', 'O', 'M', 'fr', '1', now(), now(), now() from generate_series(1, ${OWNERS}) as n`

  async function request(body: unknown, client: string): Promise<string> {
    const answer = await fetch(`${service.address}/api/v1/auth/request-otp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-forwarded-for': client },
      body: JSON.stringify(body),
    })
    await answer.arrayBuffer()
    const retryAfter = answer.headers.get('retry-after')
    return answer.status === 503 ? `503 with Retry-After: ${retryAfter}` : String(answer.status)
  }

  let count = 0
  const statuses = new Map<string, number>()
  async function flood(): Promise<void> {
    while (count < SIGN_UPS) {
      count += 1
      const body = { email: `flood${count}@example.com`, first_name: 'A', last_name: 'B', accept_cgu: true }
      const status = await request(body, findClient(count))
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
  }
  const floods = Array.from({ length: 16 }, flood)

  const delays: number[] = []
  for (let owner = 1; owner <= OWNERS; owner += 1) {
    await waitUntil(() => count >= (SIGN_UPS * owner) / (OWNERS + 1), 300_000)
    const email = `owner${owner}@example.com`
    const asked = performance.now()
    assert.equal(await request({ email }, '192.0.2.7'), '200')
    const answered = performance.now()
    await waitUntil(() => smtp.mails.some(mail => mail.to.includes(email)), 60_000)
    delays.push(performance.now() - answered)
    t.diagnostic(
      `${count} sign-ups sent, answer ${Math.round(answered - asked)} ms, mail ${Math.round(delays.at(-1)!)} ms`,
    )
  }
  await Promise.all(floods)
  await delay(0)
  t.diagnostic(`statuses ${JSON.stringify([...statuses])}, ${smtp.mails.length} mails left`)
  for (const ms of delays) assert.ok(ms < MAX_DELAY_MS, `${Math.round(ms)} ms`)
}
