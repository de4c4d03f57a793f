// Documented ways to refresh a token, under slow and reordered answers. No honest client may be signed out.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { type AnotherApp, anotherApp, harness } from './support/app.ts'
import { makeUser } from './support/factories.ts'
import { RECIPES, type Recipe, type Send, type Store } from './support/refresh-recipes.ts'
import { readPayload } from './support/scenario.ts'

const h = harness()

/** Two processes. The clock of the second one is 10 s ahead. */
const processes: Pick<AnotherApp, 'call'>[] = [h]

const MAX_JITTER_MS = 1_500
/** The number of simulated users for each recipe: half of them have one tab, half of them have two. */
const USERS = 20
const REQUESTS = 10
const ROUNDS = 2

type User = { recipe: string; store: Store; tabs: (() => Promise<number>)[] }

/** The number of refreshes that the users have sent. */
let refreshes = 0

/**
 * Returns a function that calls `work`. At most `limit` calls run at the same time, so a slow machine is not
 * overloaded.
 */
function limited<Args extends unknown[], Result>(limit: number, work: (...args: Args) => Promise<Result>) {
  const waiting: (() => void)[] = []
  let running = 0
  return async (...args: Args): Promise<Result> => {
    if (running === limit) await new Promise<void>(resolve => void waiting.push(resolve))
    else running += 1
    try {
      return await work(...args)
    } finally {
      const next = waiting.shift()
      if (next) next()
      else running -= 1
    }
  }
}

const callAnyProcess = limited(40, (method: string, path: string, token: string) =>
  processes[Math.floor(Math.random() * processes.length)]!.call(method, path, { token }),
)

/** Sends a request to one of the two processes. A 401, and an answer to a refresh, arrives up to 1.5 s late. */
const send: Send = async (path, token) => {
  const isRefresh = path.endsWith('/refresh')
  if (isRefresh) refreshes += 1
  const { status, body } = await callAnyProcess(isRefresh ? 'POST' : 'GET', path, token)
  if (isRefresh || status === 401) await delay(Math.random() * MAX_JITTER_MS)
  return { status, token: body?.access_token }
}

async function makeRecipeUser(name: string, recipe: Recipe, tabs: number): Promise<User> {
  const { token } = await makeUser(h)
  const store = { token, isSignedOut: false }
  return { recipe: name, store, tabs: Array.from({ length: tabs }, () => recipe(store, send)) }
}

/** Sends `count` concurrent requests, spread over the tabs of a user. @returns the statuses of the last answers */
function sendAtOnce({ tabs }: User, count: number): Promise<number[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => tabs[index % tabs.length]!()))
}

test('ten documented ways to refresh, with answers up to 1.5 s late and one or two tabs, sign no user out in 200 runs', {
  timeout: 120_000,
}, async t => {
  const ahead = await anotherApp(h, {}, { now: () => new Date(Date.now() + 10_000) })
  t.after(ahead.close)
  processes.push(ahead)
  const users = await Promise.all(
    Object.entries(RECIPES).flatMap(([name, recipe]) =>
      Array.from({ length: USERS }, (_, index) => makeRecipeUser(name, recipe, 1 + (index % 2))),
    ),
  )
  assert.equal(users.length, 200)
  for (let round = 0; round < ROUNDS; round += 1) {
    // The clock does not move during a burst, so a slow machine cannot stretch the burst beyond 30 s.
    h.clock.advance(61 * 60_000)
    for (const count of [REQUESTS, 3]) {
      const results = await Promise.allSettled(users.map(user => sendAtOnce(user, count)))
      for (const [index, { recipe, tabs, store }] of users.entries()) {
        const where = `${recipe}, ${tabs.length} tabs, round ${round}`
        assert.equal(store.isSignedOut, false, where)
        assert.deepEqual({ where, ...results[index] }, { where, status: 'fulfilled', value: Array(count).fill(200) })
      }
      h.clock.advance(33_000)
    }
  }
  // Without several refreshes for each user and round, the test would not show anything.
  assert.ok(refreshes > users.length * ROUNDS * 2, String(refreshes))
  const ids = users.map(({ store }) => readPayload(store.token).sid)
  const rows = await h.database.sql<{ ended_at: Date | null; generation: number }>`
    select ended_at, generation from session where id = any(${ids}::uuid[])`
  assert.equal(rows.length, users.length)
  for (const row of rows) assert.deepEqual(row, { ended_at: null, generation: 1 + ROUNDS })
})
