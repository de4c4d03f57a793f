import { migrate } from '../db/migrate.ts'
import { withDatabaseUrl } from './resolve-database.ts'
import { print, readArguments } from './usage.ts'

/** `courtside migrate` */
export async function run(args: string[]): Promise<void> {
  const read = readArguments(args, 'migrate [--json]', 'Brings the database to the newest schema.')
  if (!read) return
  const applied = await withDatabaseUrl(migrate)
  const words = applied.length > 0 ? `Applied ${applied.join(', ')}.` : 'The schema is current.'
  print({ applied }, read.values.json, words)
}
