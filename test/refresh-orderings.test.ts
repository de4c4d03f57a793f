// Requests of one client get their 401 at different times, and answers to refreshes overtake each other. This test
// tries every order in which that can happen to three requests.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { harness } from './support/app.ts'
import { makeUser } from './support/factories.ts'
import { getMeStatus, refresh, renew } from './support/refreshes.ts'

const h = harness()

const REQUESTS = 3

/**
 * The steps of one request whose token has expired, in this order:
 * - `send`: the client gets the 401, and sends a refresh with the token that it has stored.
 * - `issue`: the service answers the refresh.
 * - `store`: the client gets the answer, stores the new token, and uses it.
 */
const STEPS = ['send', 'issue', 'store'] as const

/** Returns every order of the steps of all requests. An order names the request that makes each step. */
function listOrders(done = Array.from({ length: REQUESTS }, () => 0)): number[][] {
  const next = done.flatMap((count, request) => (count < STEPS.length ? [request] : []))
  if (next.length === 0) return [[]]
  return next.flatMap(request =>
    listOrders(done.map((count, other) => (other === request ? count + 1 : count))).map(order => [request, ...order]),
  )
}

type Client = { order: number[]; stored: string; sent: string[]; answers: string[]; steps: number[] }

async function makeStep(client: Client, index: number): Promise<void> {
  const request = client.order[index]!
  const step = STEPS[client.steps[request]!++]
  if (step === 'send') client.sent[request] = client.stored
  else if (step === 'issue') client.answers[request] = await renew(h, client.sent[request]!)
  else {
    client.stored = client.answers[request]!
    assert.equal(await getMeStatus(h, client.stored), 200, String(client.order))
  }
}

/** Calls `work` for every client. At most 50 calls run at the same time. */
async function forEach(clients: Client[], work: (client: Client) => Promise<void>): Promise<void> {
  const rest = clients.values()
  await Promise.all(
    Array.from({ length: 50 }, async () => {
      for (const client of rest) await work(client)
    }),
  )
}

test('in every order of three late 401s and their slow answers, the client stays signed in with the token it stored last', {
  timeout: 300_000,
}, async () => {
  const clients = listOrders().map(order => ({ order, stored: '', sent: [], answers: [], steps: [0, 0, 0] }))
  assert.equal(clients.length, 1680)
  await forEach(clients, async client => {
    client.stored = (await makeUser(h)).token
  })
  h.clock.advance(61 * 60_000)
  for (let index = 0; index < REQUESTS * STEPS.length; index += 1) {
    await forEach(clients, client => makeStep(client, index))
    h.clock.advance(3_000)
  }
  // After this time, the service treats a refresh with a superseded token as theft.
  h.clock.advance(31_000)
  await forEach(clients, async ({ order, stored }) => {
    assert.equal(await getMeStatus(h, stored), 200, String(order))
    const { status, body } = await refresh(h, stored)
    assert.equal(status, 200, String(order))
    assert.equal(await getMeStatus(h, body.access_token), 200, String(order))
  })
})
