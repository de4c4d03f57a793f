import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { collectJourneyPlans } from './explain/journey.ts'
import { findFaults, type Plan, describeShape } from './explain/plans.ts'
import { type Postgres, startPostgres } from './postgres.ts'
import { seedService } from './seed.ts'

// Large enough that to read a table from end to end is never the better plan.
const SEED = { users: 5_000, notifications: 50_000 }

describe('no statement reads a table from end to end, or sorts more than was asked for', () => {
  let postgres: Postgres
  let url: string

  before(async () => {
    postgres = await startPostgres()
    url = await postgres.createMigrated('explain')
    await seedService(url, SEED)
  })
  after(() => postgres.stop())

  for (const mode of ['force_custom_plan', 'force_generic_plan'] as const) {
    test(mode, async () => {
      const plans = await collectJourneyPlans(url, SEED, mode)
      // Else nothing was looked at.
      assert.ok(new Set(plans.map(plan => plan.request)).size > 25)
      assert.deepEqual(plans.flatMap(told), [])
    })
  }

  test('what would be a fault is seen', () => {
    const scan = { 'Node Type': 'Seq Scan', 'Relation Name': 'notification', 'Actual Rows': 1, 'Actual Loops': 1 }
    const sort = { 'Node Type': 'Sort', 'Actual Rows': 10_000, 'Actual Loops': 1, Plans: [scan] }
    assert.deepEqual(findFaults({ root: sort }), ['sorts 10000 rows', 'reads all of notification'])
  })
})

function told(plan: Plan): string[] {
  const statement = plan.statement.replace(/\s+/g, ' ').slice(0, 90)
  return findFaults(plan).map(fault => `${plan.request}: ${statement} … ${fault}: ${describeShape(plan.root)}`)
}
