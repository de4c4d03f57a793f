import assert from 'node:assert/strict'
import { batchRequest, makeEvent, reportRequest } from '../events.ts'
import { type Bench, compare } from '../measure.ts'
import { startService } from '../programs.ts'
import { formatNumber, goalRow, missingRow, type Part } from '../report.ts'
import { seedService } from '../seed.ts'
import type { Server } from '../servers.ts'

const USERS = 5_000
const BATCH = 100
const RECIPIENTS = 3
const PRODUCERS = 64

/** The goals on the server whose disk flushes take 1.5 ms. */
const GOALS = {
  single: { work: `single events of ${PRODUCERS} producers: events per second`, goal: { min: 2_000 } },
  p99: { work: `single events of ${PRODUCERS} producers: p99 at half load, ms`, goal: { max: 30 } },
  batch: { work: 'intake, batches of 100: notifications per second', goal: { min: 5_000 } },
}

/** Measures the intake of single events, and of batches of 100 events, on each server. */
export async function intake(bench: Bench): Promise<Part> {
  const { all, missing } = await bench.servers()
  const part: Part = { rows: [], comparisons: [] }
  for (const [index, server] of (bench.smoke ? all.slice(0, 1) : all).entries()) {
    const { single, p99, batch } = await measureServer(bench, server, part)
    if (index !== 1) continue
    part.rows.push(
      goalRow(`${GOALS.single.work}, ${server.name}`, single, GOALS.single.goal, formatNumber),
      goalRow(`${GOALS.p99.work}, ${server.name}`, p99, GOALS.p99.goal, formatNumber),
      goalRow(`${GOALS.batch.work}, ${server.name}`, batch, GOALS.batch.goal, formatNumber),
    )
  }
  if (missing !== undefined) {
    for (const { work, goal } of Object.values(GOALS)) part.rows.push(missingRow(work, goal, missing))
  }
  return part
}

async function measureServer(bench: Bench, { name: server, postgres }: Server, part: Part) {
  const url = await postgres.createMigrated('intake')
  await seedService(url, { users: USERS, notifications: USERS })
  const programs = [await startService(url), ...(bench.against ? [await startService(url, {}, bench.against)] : [])]
  const check = (body: any) => {
    assert.deepEqual([body.status, body.notifications], ['accepted', RECIPIENTS])
  }
  const checkBatch = ({ results }: any) => {
    assert.equal(results.length, BATCH)
    results.forEach(check)
  }
  const nextBatch = () => batchRequest(Array.from({ length: BATCH }, () => makeEvent(USERS)))
  const makeContenders = (next: () => string, checkAnswer: (body: any) => void, connections: number) =>
    programs.map((program, index) => ({
      name: index === 0 ? program.name : 'the other checkout',
      programs: [program],
      next,
      check: checkAnswer,
      connections,
    }))
  try {
    const here = { ...bench, postgres }
    const singles = makeContenders(() => reportRequest(makeEvent(USERS)), check, PRODUCERS)
    const single = await compare(here, singles, 'courtside')
    const batches = await compare(here, makeContenders(nextBatch, checkBatch, 4))
    part.comparisons!.push(
      { work: `intake, one event, ${server}`, figures: single },
      { work: `intake, a batch of 100, ${server}`, figures: batches },
    )
    const perSecond = batches[0]!.perSecond * BATCH * RECIPIENTS
    return { single: single[0]!.perSecond, p99: single[0]!.p99, batch: perSecond }
  } finally {
    await Promise.all(programs.map(program => program.stop()))
  }
}
