import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, test } from 'node:test'
import { harness } from './support/app.ts'
import { makeUser } from './support/factories.ts'
import { chance, GuessModel, type ModelCode, waitSeconds } from './support/guess-model.ts'
import { queuedCode } from './support/scenario.ts'
import { addressIn, strangers, WITH_BUDGETS } from './support/strangers.ts'

const DAY = 86_400

type Attack = { networks: number; days: number; staysBelow: boolean }

/** Returns the sum of the chances of all codes that an attack on one account guesses at. */
function attackOne({ networks, days, staysBelow }: Attack): number {
  const model = new GuessModel()
  let [expected, asked] = [0, 0]
  // `sumUp` removes the codes from the model, so the mails to each network are kept here.
  const keptMails = new Map<number, { mails: number; at: number }>()
  const countMails = (network: number) => {
    const { mails, at } = keptMails.get(network) ?? { mails: 0, at: 0 }
    return at > model.now - 7 * DAY ? mails : 0
  }
  const sumUp = (code: ModelCode) => {
    expected += chance(code.parts, code.attempts)
    model.address(0).codes.delete(code.network)
  }
  while (model.now < days * DAY) {
    // The attacker takes turns with its networks, and skips networks that must wait longer.
    const network = asked % networks
    asked += 1
    const sentAt = model.address(0).sentAt
    const wait = Math.max(model.wait(0, network), sentAt + waitSeconds(countMails(network)) - model.now)
    model.now += Number.isFinite(wait) && wait > 0 ? Math.min(wait, 14_400) : 0
    // Guesses at codes of three parts gain nothing. They would only keep the window of the account full.
    if (model.partsDue(0, network) > (staysBelow ? 1 : 2)) {
      model.now += 3600
      continue
    }
    const code = model.request(0, network)
    keptMails.set(network, { mails: countMails(network) + 1, at: model.now })
    while (code.attempts < 5) {
      if (model.partsDue(0, network) > code.parts) break
      if (model.guess(0, network).length === 0) break
    }
    sumUp(code)
  }
  return expected
}

/**
 * Returns the sum of the chances of an attack on 100,000 accounts. The attacker has a code for every account at any
 * time, and guesses five times at each code. Waits play no role, because there are so many accounts.
 */
function attackAny({ networks, days, staysBelow }: Attack): number {
  const model = new GuessModel()
  let [expected, target] = [0, 0]
  for (let hour = 0; hour < days * 24; hour += 1) {
    model.now = hour * 3600
    let useless = 0
    for (let turn = 0; useless < Math.min(networks, 60) && turn < 5_000; turn += 1) {
      const network = (hour * 61 + turn) % networks
      const account = target % 100_000
      const parts = model.partsDue(account, network)
      // More guesses at codes of three parts gain nothing. An attacker who stays below saves its guesses for later.
      if (parts === 3 || (staysBelow && parts > 1)) {
        useless += 1
        target += 1
        continue
      }
      const code = model.request(account, network)
      while (code.attempts < 5 && model.partsDue(account, network) <= code.parts) {
        if (model.guess(account, network).length === 0) break
      }
      expected += chance(code.parts, code.attempts)
      model.address(account).codes.delete(network)
      useless = code.attempts === 0 ? useless + 1 : 0
      // The attacker prefers accounts whose budget is spent already, because these guesses do not count as within.
      if (turn % 3 === 0 || model.partsDue(account, network) === 3) target += 1
    }
  }
  return expected
}

const toProbability = (expected: number) => 1 - Math.exp(-expected)
const percent = (value: number) => `${(100 * value).toPrecision(2)} %`

describe('the odds in SECURITY.md', () => {
  const cells: { networks: number; days: number; staysBelow: boolean; one: number; any: number }[] = []
  for (const networks of [1, 100, 10_000]) {
    for (const days of [30, 365]) {
      for (const staysBelow of [false, true]) {
        const attack = { networks, days, staysBelow }
        cells.push({ ...attack, one: attackOne(attack), any: attackAny(attack) })
      }
    }
  }

  test('the chance to take one given account is at most 0.14 % in 30 days, and at most 0.56 % in a year', () => {
    for (const { days, one } of cells)
      assert.ok(one <= (days === 30 ? 0.0014 : 0.0056), `${days} days: ${percent(one)}`)
  })

  test('each of five old tokens adds at most 0.25 %', () => {
    // A session gets five mails as a known client, and each code has five attempts of one part.
    assert.equal(5 * chance(1, 5), 0.0025)
  })

  test('the chance to take any of 100,000 accounts is at most 1.1 % in a week, 5.1 % in 30 days and 43 % in a year', () => {
    const week = toProbability(attackAny({ networks: 10_000, days: 7, staysBelow: false }))
    assert.ok(week <= 0.011, percent(week))
    for (const { days, any } of cells) {
      const probability = toProbability(any)
      assert.ok(probability <= (days === 30 ? 0.051 : 0.43), `${days} days: ${percent(probability)}`)
    }
  })

  test('the table of SECURITY.md contains the simulated odds', async () => {
    const security = await readFile(new URL('../SECURITY.md', import.meta.url), 'utf8')
    for (const row of tableRows()) assert.ok(security.includes(row), `missing row: ${row}`)
  })

  function tableRows(): string[] {
    return cells.map(({ networks, days, staysBelow, one, any }) => {
      const odds = [0, 1, 5].map(tokens => percent(one + tokens * 0.0025))
      const kind = staysBelow ? 'stays just below the budgets' : 'spends the budgets'
      return `| ${networks.toLocaleString('en')} | ${kind} | ${days} | ${odds.join(' | ')} | ${percent(toProbability(any))} |`
    })
  }
})

/**
 * Returns how many minutes attackers in other networks can delay a stranger who has not asked before. The attackers win
 * every race for the next turn. Returns infinity if the delay is longer than three weeks.
 */
function delayMinutes(networks: number): number {
  const model = new GuessModel()
  let next = 0
  for (let minute = 0; minute < 21 * 24 * 60; minute += 1) {
    model.now = minute * 60
    for (let tried = 0; tried < networks && model.wait(0, next) > 0; tried += 1) next = (next + 1) % networks
    if (model.wait(0, next) > 0) return minute
    model.request(0, next)
  }
  return Number.POSITIVE_INFINITY
}

test('each network delays a stranger by three minutes in seven days, and 3,400 networks keep strangers out', () => {
  for (const networks of [1, 10, 300, 3_300]) assert.equal(delayMinutes(networks), 3 * networks)
  assert.equal(delayMinutes(3_400), Number.POSITIVE_INFINITY)
})

describe('the statements of the service behave like the model', () => {
  const h = harness(WITH_BUDGETS)
  const { request, guess } = strangers(h)

  /** A small generator of pseudo-random numbers, so that a failure can be repeated. */
  function random(seed: number) {
    let state = seed
    return (below: number) => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
      return Math.floor((state / 2 ** 32) * below)
    }
  }

  for (let seed = 1; seed <= 6; seed += 1) {
    test(`in the random sequence ${seed}, each answer, each code and each count is the one of the model`, async () => {
      const pick = random(seed)
      const emails = [(await makeUser(h)).email, (await makeUser(h)).email, `nobody${seed}@example.com`]
      const base = seed * 10
      const model = new GuessModel()
      await h.database.sql`
        update sign_in_installation set guesses = 0, all_guesses = 0, outside_guesses = 0, guesses_since = null,
          three_parts_until = null`
      for (let step = 0; step < 200; step += 1) {
        const [address, network] = [pick(emails.length), pick(4)]
        const email = emails[address]!
        const action = pick(10)
        if (action === 0) {
          const seconds = [1, 30, 60, 120, 600, 900, 3600, DAY][pick(8)]!
          h.clock.advance(seconds * 1000)
          model.now += seconds
        } else if (action < 4) {
          const answer = await request(email, { network: base + network })
          const wait = model.wait(address, network)
          assert.equal(answer.status, wait > 0 ? 429 : 200, `step ${step}`)
          if (wait > 0) assert.equal(answer.headers['retry-after'], String(Math.ceil(wait)))
          else {
            const { parts } = model.request(address, network)
            const code = await queuedCode(h, email, null, addressIn(base + network))
            assert.equal(code.split(' ').length, parts, `step ${step}`)
          }
        } else {
          const wrong = await findWrong(email)
          assert.equal((await guess(email, wrong, { network: base + network })).status, 422)
          model.guess(address, network)
        }
      }
      await compareCounts(model, emails)
      h.clock.advance(100 * DAY * 1000)
    })
  }

  /** Returns four digits that are no part of any code of the address. */
  async function findWrong(email: string): Promise<string> {
    const rows = await h.database.sql<{ id: string; sealed: string }>`
      select id, sealed from sign_in_code where email = ${email} and sealed is not null`
    const parts = new Set(rows.flatMap(({ id, sealed }) => h.ctx.keys.open(id, sealed)!.split(' ')))
    return Array.from({ length: 100 }, (_, index) => String(1000 + index)).find(code => !parts.has(code))!
  }

  async function compareCounts(model: GuessModel, emails: string[]): Promise<void> {
    for (const [id, email] of emails.entries()) {
      const { bucket, codes } = model.address(id)
      const [row] = await h.database.sql<{ guesses: number; full: number }>`
        select case when guesses_since > ${new Date(h.clock.now().getTime() - DAY * 1000)} then guesses else 0 end as guesses,
          coalesce(greatest(0, extract(epoch from guesses_full_at - ${h.clock.now()}::timestamptz)), 0)::float8 as full
        from sign_in_address where email = ${email}`
      if (!row) continue
      assert.equal(row.guesses, bucket.windowGuesses(model.now))
      assert.ok(Math.abs(row.full - Math.max(0, bucket.fullAt - model.now)) < 1)
      const attempts = await h.database.sql<{ sum: number }>`
        select coalesce(sum(attempts), 0)::int as sum from sign_in_code where email = ${email} and network is not null`
      assert.equal(
        attempts[0]!.sum,
        [...codes.values()].reduce((sum, code) => sum + code.attempts, 0),
      )
    }
    const [installation] = await h.database.sql`
      select guesses, all_guesses, outside_guesses from sign_in_installation`
    const { onePart, within, outside } = model
    assert.deepEqual(installation, { guesses: onePart, all_guesses: within, outside_guesses: outside })
  }
})
