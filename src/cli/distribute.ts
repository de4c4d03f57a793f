import { isUndefinedTable } from '../db/errors.ts'
import { distribute, type Inspection, inspect, withClient } from '../notifications/distribute.ts'
import { audited } from './audited.ts'
import { withDatabaseUrl } from './resolve-database.ts'
import { print, printText, readArguments } from './usage.ts'

const ABOUT = `Distributes the table of notifications over the workers of Citus, by user. Stop the service first. The
command shows its statements before it runs them. It can be repeated: it runs only what is missing. With --check, it
changes nothing, and its exit code is 1 if a statement is missing or something prevents the command.`

/** `courtside distribute [--check]` */
export async function run(args: string[]): Promise<void> {
  const parsed = readArguments(args, 'distribute [--check] [--json]', ABOUT, { check: { type: 'boolean' } })
  if (!parsed) return
  const { check = false, json } = parsed.values
  await withDatabaseUrl(url =>
    withClient(url, async client => {
      const found = await inspect(client).catch(explainMissingTable)
      if (check) return report(found, json)
      if (found.faults.length > 0) throw new Error(toText(found))
      if (!json) printText(toText(found))
      if (found.statements.length > 0) await audited('distribute', () => distribute(client, found.statements))
      const left = await inspect(client)
      print({ ran: found.statements, ...left }, json, toText(left))
    }),
  )
}

function report(found: Inspection, json: boolean | undefined): void {
  print(found, json, toText(found))
  if (found.faults.length + found.statements.length > 0) process.exitCode = 1
}

function toText({ faults, statements }: Inspection): string {
  const lines = [
    ...faults.map(fault => `Not possible: ${fault}.`),
    ...(statements.length > 0 ? ['Statements to run:', ...statements.map(statement => `  ${statement};`)] : []),
  ]
  return lines.length > 0 ? lines.join('\n') : 'The table of notifications is distributed by user.'
}

function explainMissingTable(error: unknown): never {
  if (!isUndefinedTable(error)) throw error
  throw new Error('The database is not migrated yet. Run "npm run courtside -- migrate".', { cause: error })
}
