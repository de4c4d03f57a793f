import { parseArgs } from 'node:util'
import { pino } from 'pino'
import { readConfig } from '../config.ts'
import { migrate } from '../db/migrate.ts'
import { findDatabase } from './find.ts'

/** `courtside migrate [--json]` */
export async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({ args, options: { json: { type: 'boolean' }, help: { type: 'boolean' } } })
  if (values.help)
    return console.log('Usage: npm run courtside -- migrate [--json]\n\nBrings the database to the newest schema.')
  const database = await findDatabase(readConfig(process.env), pino({ level: 'silent' }))
  try {
    const applied = await migrate(database.url)
    if (values.json) console.log(JSON.stringify({ applied }))
    else console.log(applied.length > 0 ? `Applied ${applied.join(', ')}.` : 'The schema is current.')
  } finally {
    await database.close()
  }
}
