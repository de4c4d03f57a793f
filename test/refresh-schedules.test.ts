// One client sends requests at any times, with answers up to 25 s late. The client refreshes as docs/integrating.md
// says.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { harness } from './support/app.ts'
import { makeUser } from './support/factories.ts'
import { getMeStatus, refresh } from './support/refreshes.ts'

const h = harness()

const SECONDS = 1_000
const MINUTES = 60_000

/** `gapMs` is the time since the previous request. The other times are the durations of the four transfers. */
type Planned = { gapMs: number; askMs: number; refuseMs: number; refreshMs: number; renewMs: number }

// An answer to a refresh arrives within 25 s of the request.
const transfer = fc.oneof(fc.nat({ max: 500 }), fc.integer({ min: 5 * SECONDS, max: 12_500 }))
const gap = fc.oneof(
  { weight: 3, arbitrary: fc.nat({ max: 5 * SECONDS }) },
  { weight: 2, arbitrary: fc.integer({ min: 20 * SECONDS, max: 40 * SECONDS }) },
  { weight: 1, arbitrary: fc.integer({ min: 50 * MINUTES, max: 70 * MINUTES }) },
)
const plan = fc.array(
  fc.record({ gapMs: gap, askMs: transfer, refuseMs: transfer, refreshMs: transfer, renewMs: transfer }),
  { minLength: 2, maxLength: 16, size: 'max' },
)

/** Runs events in the order of their times, and moves the clock of the service to the time of each event. */
function createTimeline() {
  const events: { at: number; run: () => Promise<void> | void }[] = []
  return {
    add(delayMs: number, run: () => Promise<void> | void): void {
      events.push({ at: h.clock.now().getTime() + delayMs, run })
    },
    async runAll(): Promise<void> {
      for (;;) {
        // `sort` is stable, so events at the same time run in the order in which they were added.
        const next = events.sort((one, other) => one.at - other.at).shift()
        if (!next) return
        h.clock.set(new Date(next.at))
        await next.run()
      }
    },
  }
}

async function simulate(requests: Planned[]): Promise<number> {
  let stored = (await makeUser(h)).token
  let refreshes = 0
  const { add, runAll } = createTimeline()

  function send({ askMs, refuseMs, refreshMs, renewMs }: Planned): void {
    const token = stored
    add(askMs, async () => {
      if ((await getMeStatus(h, token)) === 401) add(refuseMs, () => renewStored(askMs, refreshMs, renewMs))
    })
  }
  function renewStored(askMs: number, refreshMs: number, renewMs: number): void {
    const token = stored
    add(refreshMs, async () => {
      refreshes += 1
      const { status, body } = await refresh(h, token)
      assert.equal(status, 200, 'the client was signed out')
      add(renewMs, () => {
        stored = body.access_token
        add(askMs, async () => assert.equal(await getMeStatus(h, body.access_token), 200))
      })
    })
  }

  let startsMs = 0
  for (const request of requests) {
    startsMs += request.gapMs
    add(startsMs, () => send(request))
  }
  await runAll()
  h.clock.advance(31 * SECONDS)
  assert.equal((await refresh(h, stored)).status, 200, 'the client was signed out')
  return refreshes
}

test('no schedule of requests, late 401s and answers that arrive within 25 s signs an honest client out', {
  timeout: 300_000,
}, async () => {
  let refreshes = 0
  await fc.assert(
    fc.asyncProperty(plan, async requests => {
      refreshes += await simulate(requests)
    }),
    { numRuns: 300 },
  )
  assert.ok(refreshes > 300, String(refreshes))
})
