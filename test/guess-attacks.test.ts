// Replays attacks that once took accounts, or kept their owners out.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { anotherApp, harness } from './support/app.ts'
import { makeUser } from './support/factories.ts'
import { newEmail, otherThan, queuedCode, readPayload, signIn, signUp } from './support/scenario.ts'
import { strangers, WITH_BUDGETS } from './support/strangers.ts'

const MINUTE = 60_000
const DAY = 86_400_000

const h = harness(WITH_BUDGETS)
const { request, guess, ask } = strangers(h)

/** Runs tasks with a number of connections, each of which sends one request after the other. */
async function withConnections<T>(connections: number, items: T[], run: (item: T) => Promise<void>): Promise<void> {
  const queue = [...items]
  await Promise.all(
    Array.from({ length: connections }, async () => {
      for (let item = queue.shift(); item !== undefined; item = queue.shift()) await run(item)
    }),
  )
}

async function countAttempts(): Promise<number> {
  const [row] = await h.database.sql<{ sum: number }>`select coalesce(sum(attempts), 0)::int as sum from sign_in_code`
  return row!.sum
}

test('a /48 with 12 connections for 60 s gets at most 50 guesses at codes of one part, not 85,000', async () => {
  const app = await anotherApp(h, { ...WITH_BUDGETS, THROTTLE_REQUEST_OTP: '5', THROTTLE_VERIFY_OTP: '10' })
  await h.database.sql`
    insert into app_user (email, first_name, last_name, locale, terms_version, terms_accepted_at, created_at, updated_at)
    select 'victim' || n || '@example.com', 'Marie', 'Durand', 'fr', '1', now(), now(), now()
    from generate_series(1, 600) as n`
  const statuses: number[] = []
  const send = async (path: string, body: object, subnet: number) => {
    const remoteAddress = `2001:db8:aaaa:${subnet.toString(16)}::1`
    const { status } = await app.call('POST', `/api/v1/auth/${path}`, { body, remoteAddress })
    statuses.push(status)
  }
  // Each /64 asks for two codes, and guesses five times at each.
  const subnets = Array.from({ length: 300 }, (_, index) => index)
  await withConnections(12, subnets, async subnet => {
    for (const email of [`victim${2 * subnet + 1}@example.com`, `victim${2 * subnet + 2}@example.com`]) {
      await send('request-otp', { email }, subnet)
      for (let index = 0; index < 5; index += 1) await send('verify-otp', { email, code: `${1000 + index}` }, subnet)
    }
  })
  const [row] = await h.database.sql<{ one: number; all: number }>`
    select coalesce(sum(attempts) filter (where part_macs is null), 0)::int as one, coalesce(sum(attempts), 0)::int as all
    from sign_in_code where email like 'victim%'`
  // The row of a new network does not exist yet, so the first concurrent guesses see a full bucket.
  assert.ok(row!.one <= 60, `${row!.one} guesses at codes of one part`)
  assert.ok(row!.all <= 200, `${row!.all} guesses`)
  assert.ok(statuses.filter(status => status === 429).length > 3_000)
  assert.ok(statuses.filter(status => status === 200).length <= 100)
  await app.close()
})

describe('a stolen token that asks each minute', () => {
  /** Deletes the counted guesses of earlier tests, so that each test begins with full budgets. */
  const refill = () => h.database.sql`
    update sign_in_installation set guesses = 0, all_guesses = 0, outside_guesses = 0, three_parts_until = null`

  for (const [stolen, hours] of [
    [1, 24],
    [3, 8],
  ] as const) {
    test(`with ${stolen} stolen token(s) asking for ${hours} hours, the owner signs in within ${6 * stolen} minutes on any device`, {
      timeout: 300_000,
    }, async () => {
      await refill()
      const owner = await signUp(h)
      const tokens = [owner.token]
      while (tokens.length < stolen) tokens.push((await signIn(h, owner.email)).token)
      for (const token of tokens) await h.call('POST', '/api/v1/auth/logout', { token })
      let device = (await signIn(h, owner.email)).token
      h.clock.advance(7 * DAY)
      const start = h.clock.now().getTime()
      const tries = [1, 3, 7, 20, 120, 600, 1200]
      let network = 9000 + 100 * stolen
      for (let minute = 0; minute < hours * 60; minute += 1) {
        h.clock.set(new Date(start + minute * MINUTE))
        for (const [index, token] of tokens.entries()) await request(owner.email, { token, network: 7000 + index })
        if (tries.includes(minute)) {
          network += 1
          minute += await ownerSignsIn(minute, network, undefined)
          minute += await ownerSignsIn(minute, network, device)
        }
      }

      /** The owner asks each minute until a mail comes, and types its code. Returns the minutes that this took. */
      async function ownerSignsIn(at: number, from: number, token: string | undefined): Promise<number> {
        for (let waited = 0; ; waited += 1) {
          assert.ok(waited <= 6 * stolen, `the owner is not in after ${waited} minutes`)
          h.clock.set(new Date(start + (at + waited) * MINUTE + (token ? 45_000 : 30_000)))
          if ((await request(owner.email, { network: from, token })).status === 200) {
            const code = await queuedCode(h, owner.email, token ? readPayload(token).sid : null)
            const answer = await guess(owner.email, code, { network: from, token })
            assert.equal(answer.status, 200, 'the first code that the owner typed was refused')
            if (token) device = answer.body.access_token
            return waited
          }
          const next = new Date(start + (at + waited + 1) * MINUTE)
          h.clock.set(next)
          for (const [index, thief] of tokens.entries()) {
            await request(owner.email, { token: thief, network: 7000 + index })
          }
        }
      }
    })
  }
})

test('600 codes that 150 networks collected first give at most 110 guesses afterwards', async () => {
  h.clock.advance(30 * DAY)
  const codes: { email: string; network: number; code: string }[] = []
  await withConnections(
    12,
    Array.from({ length: 600 }, (_, index) => 20_000 + (index % 150)),
    async network => {
      const email = newEmail()
      codes.push({ email, network, code: await ask(email, { network }) })
    },
  )
  const before = await countAttempts()
  await withConnections(50, codes, async ({ email, network, code }) => {
    for (let index = 0; index < 5; index += 1) await guess(email, otherThan(code.slice(0, 4)), { network })
  })
  const guesses = (await countAttempts()) - before
  assert.ok(guesses >= 100 && guesses <= 110, `${guesses} guesses were compared`)
})

test('sixty sessions from an hour in the mailbox give 25 guesses for each of five sessions, once', async () => {
  h.clock.advance(30 * DAY)
  const { id, email } = await makeUser(h)
  const tokens: string[] = []
  for (let minute = 0; minute < 60; minute += 1) {
    h.clock.advance(MINUTE)
    tokens.push((await signInAs(email)).token)
  }
  await h.database.sql`update session set ended_at = ${h.clock.now()}, end_reason = 'logout' where user_id = ${id}`
  await h.database.sql`update sign_in_code set attempts = 0 where email = ${email}`
  let knownGuesses = 0
  for (let day = 0; day < 7; day += 1) {
    for (const [index, token] of tokens.entries()) {
      h.clock.advance(MINUTE)
      const { sid } = readPayload(token)
      if ((await request(email, { token, network: 40_000 + index })).status !== 200) continue
      const [own] = await h.database.sql`
        select id from sign_in_code where email = ${email} and session_id = ${sid} and expires_at > ${h.clock.now()}`
      if (!own) continue
      for (let attempt = 0; attempt < 5; attempt += 1) {
        await guess(email, '0000', { token, network: 40_000 + index })
        knownGuesses += 1
      }
    }
    h.clock.advance(DAY - 60 * MINUTE)
  }
  assert.equal(knownGuesses, 5 * 25)
})

async function signInAs(email: string): Promise<{ token: string }> {
  const code = await ask(email, { network: 39_999 })
  const answer = await guess(email, code, { network: 39_999 })
  assert.equal(answer.status, 200, answer.text)
  return { token: answer.body.access_token }
}
