import { migrate } from '../db/migrate.ts'
import { audited } from './audited.ts'
import { withDatabaseUrl } from './resolve-database.ts'
import { print, readArguments } from './usage.ts'

/** `courtside migrate` */
export async function run(args: string[]): Promise<void> {
  const parsed = readArguments(args, 'migrate [--json]', 'Migrates the database to the newest schema.')
  if (!parsed) return
  const applied = await withDatabaseUrl(url => audited('migrate', () => migrate(url)), { mayCreate: true })
  const text = applied.length > 0 ? `Applied ${applied.join(', ')}.` : 'The schema is current.'
  print({ applied }, parsed.values.json, text)
}
