// node bench/explain.ts [--data FOLDER] prints the plan of every statement in a database with 10 000 000 notifications.
// The program marks plans that read a whole table or sort too many rows. It uses the large database of the bench part
// `growth` in FOLDER. If FOLDER does not contain this database, the program creates it.
import { parseArgs } from 'node:util'
import { collectJourneyPlans } from './explain/journey.ts'
import { describeShape, findFaults } from './explain/plans.ts'
import { startPostgres } from './postgres.ts'
import { findOrCreateDatabase, LARGE } from './work/growth.ts'

const { values: options } = parseArgs({ options: { data: { type: 'string' } } })
const postgres = await startPostgres({ folder: options.data })
try {
  const url = await findOrCreateDatabase({ postgres }, 'large', LARGE)
  for (const mode of ['force_custom_plan', 'force_generic_plan'] as const) {
    console.log(`\n## ${mode}\n`)
    const seen = new Set<string>()
    for (const plan of await collectJourneyPlans(url, LARGE, mode)) {
      const shape = describeShape(plan.root)
      if (seen.has(plan.statement + shape)) continue
      seen.add(plan.statement + shape)
      const faults = findFaults(plan)
      console.log(`${plan.request}: ${plan.statement.replace(/\s+/g, ' ').slice(0, 100)}`)
      console.log(`  ${shape}\n  ${plan.ms} ms, ${plan.pages} pages${faults.map(fault => `\n  !! ${fault}`).join('')}`)
    }
  }
} finally {
  await postgres.stop()
}
