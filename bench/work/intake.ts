import assert from 'node:assert/strict'
import { report, reportBatch, someEvent } from '../events.ts'
import { type Bench, compare, type Figures } from '../measure.ts'
import { startOther, startService } from '../programs.ts'
import { number, type Part, ratio, row } from '../report.ts'
import { seedService } from '../seed.ts'

const USERS = 5_000
const BATCH = 100
const TOLD = 3

/** Facts from the games service: one at a time beside the same inserts in a bare transaction, and in batches of 100. */
export async function intake(bench: Bench): Promise<Part> {
  const url = await bench.postgres.createMigrated('intake')
  await seedService(url, { users: USERS, notifications: USERS })
  const programs = await Promise.all([
    startService(url),
    startOther('ceiling', url),
    ...(bench.against ? [startService(url, {}, bench.against)] : []),
  ])
  const check = (body: any) => {
    assert.deepEqual([body.status, body.notifications], ['accepted', TOLD])
  }
  const checkBatch = ({ results }: any) => {
    assert.equal(results.length, BATCH)
    results.forEach(check)
  }
  const batch = () => reportBatch(Array.from({ length: BATCH }, () => someEvent(USERS)))
  try {
    const single = await compare(
      bench,
      programs.map((program, index) => ({
        name: index < 2 ? program.name : 'the other checkout',
        programs: [program],
        next: () => report(someEvent(USERS)),
        check,
      })),
      'courtside',
    )
    const batches = await compare(bench, [
      { name: 'courtside', programs: [programs[0]!], next: batch, check: checkBatch, connections: 4 },
    ])
    const [own, ceiling] = single as [Figures, Figures]
    const perSecond = batches[0]!.perSecond * BATCH * TOLD
    return {
      rows: [
        row(
          'intake, one fact with 3 recipients, of the bare inserts',
          own.perSecond / ceiling.perSecond,
          { least: 0.6 },
          ratio,
        ),
        row('intake, batches of 100, notifications a second', perSecond, { least: 5_000 }, number),
      ],
      figures: [
        { work: 'intake, one fact', of: single },
        { work: 'intake, a batch of 100', of: batches },
      ],
    }
  } finally {
    await Promise.all(programs.map(program => program.stop()))
  }
}
