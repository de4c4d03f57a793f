import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { collectJourneyPlans } from './explain/journey.ts'
import { describeShape, findFaults, type Plan } from './explain/plans.ts'
import { type Postgres, startPostgres } from './postgres.ts'
import { seedService } from './seed.ts'

// With this many rows, a sequential scan is never the best plan.
const SEED = { users: 5_000, notifications: 50_000 }

describe('the plans of all statements', () => {
  let postgres: Postgres
  let url: string

  before(async () => {
    postgres = await startPostgres()
    url = await postgres.createMigrated('explain')
    await seedService(url, SEED)
  })
  after(() => postgres.stop())

  for (const mode of ['force_custom_plan', 'force_generic_plan'] as const) {
    test(`with plan_cache_mode ${mode}, no statement reads a whole large table or sorts over 300 rows`, async () => {
      const plans = await collectJourneyPlans(url, SEED, mode)
      // `collectJourneyPlans` needs more than 25 requests to call all functions of the service. A smaller number means
      // that plans are missing.
      assert.ok(new Set(plans.map(plan => plan.request)).size > 25)
      assert.deepEqual(plans.flatMap(describeFaults), [])
    })
  }

  test('findFaults reports a sequential scan of a large table and a sort of 10 000 rows', () => {
    const scan = { 'Node Type': 'Seq Scan', 'Relation Name': 'notification', 'Actual Rows': 1, 'Actual Loops': 1 }
    const sort = { 'Node Type': 'Sort', 'Actual Rows': 10_000, 'Actual Loops': 1, Plans: [scan] }
    assert.deepEqual(findFaults({ root: sort }), ['sorts 10000 rows', 'reads all of notification'])
  })
})

function describeFaults(plan: Plan): string[] {
  const statement = plan.statement.replace(/\s+/g, ' ').slice(0, 90)
  return findFaults(plan).map(fault => `${plan.request}: ${statement} … ${fault}: ${describeShape(plan.root)}`)
}
