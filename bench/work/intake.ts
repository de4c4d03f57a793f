import assert from 'node:assert/strict'
import { batchRequest, makeEvent, reportRequest } from '../events.ts'
import { type Bench, compare, type Figures } from '../measure.ts'
import { startProgram, startService } from '../programs.ts'
import { formatNumber, formatRatio, goalRow, type Part } from '../report.ts'
import { seedService } from '../seed.ts'

const USERS = 5_000
const BATCH = 100
const RECIPIENTS = 3

/**
 * Measures the intake of single events, and the intake of batches of 100 events. Compares single events with the
 * ceiling, the minimal server in `programs/ceiling.ts`. The ceiling makes the same inserts in a plain transaction.
 */
export async function intake(bench: Bench): Promise<Part> {
  const url = await bench.postgres.createMigrated('intake')
  await seedService(url, { users: USERS, notifications: USERS })
  const programs = await Promise.all([
    startService(url),
    startProgram('ceiling', url),
    ...(bench.against ? [startService(url, {}, bench.against)] : []),
  ])
  const check = (body: any) => {
    assert.deepEqual([body.status, body.notifications], ['accepted', RECIPIENTS])
  }
  const checkBatch = ({ results }: any) => {
    assert.equal(results.length, BATCH)
    results.forEach(check)
  }
  const batch = () => batchRequest(Array.from({ length: BATCH }, () => makeEvent(USERS)))
  try {
    const single = await compare(
      bench,
      programs.map((program, index) => ({
        name: index < 2 ? program.name : 'the other checkout',
        programs: [program],
        next: () => reportRequest(makeEvent(USERS)),
        check,
      })),
      'courtside',
    )
    const batches = await compare(bench, [
      { name: 'courtside', programs: [programs[0]!], next: batch, check: checkBatch, connections: 4 },
    ])
    const [own, ceiling] = single as [Figures, Figures]
    const perSecond = batches[0]!.perSecond * BATCH * RECIPIENTS
    return {
      rows: [
        goalRow(
          'intake, one event with 3 recipients: throughput relative to the bare inserts',
          own.perSecond / ceiling.perSecond,
          { min: 0.6 },
          formatRatio,
        ),
        goalRow('intake, batches of 100: notifications per second', perSecond, { min: 5_000 }, formatNumber),
      ],
      comparisons: [
        { work: 'intake, one event', figures: single },
        { work: 'intake, a batch of 100', figures: batches },
      ],
    }
  } finally {
    await Promise.all(programs.map(program => program.stop()))
  }
}
