import { readFile } from 'node:fs/promises'
import { readLevels } from '../accounts/import-levels.ts'
import * as levels from '../accounts/levels.ts'
import { audited } from './audited.ts'
import { withDatabase } from './resolve-database.ts'
import { print, readArguments, UsageError } from './usage.ts'

const ABOUT = `FILE is a JSON array of {"slug", "name", "description", "position"}. The import
replaces all levels. It updates each level whose slug is in FILE, adds new levels, and removes all other levels. If a
user has chosen a level that is not in FILE, the import changes nothing. With --force, the import also
removes such a level and clears the choices of its users.`

/** `courtside levels list|import` */
export async function run([action = '', ...args]: string[]): Promise<void> {
  if (action === 'list') return listLevels(args)
  if (action === 'import') return importLevels(args)
  throw new UsageError('Usage: npm run courtside -- levels list|import FILE [--force] [--json]')
}

async function listLevels(args: string[]): Promise<void> {
  const parsed = readArguments(args, 'levels list [--json]', 'Lists the game levels.')
  if (!parsed) return
  const scale = await withDatabase(sql => levels.list(sql))
  const lines = scale.map(({ position, slug, name }) => `${String(position).padStart(3)}  ${slug.padEnd(24)} ${name}`)
  print(scale, parsed.values.json, lines.join('\n'))
}

async function importLevels(args: string[]): Promise<void> {
  const parsed = readArguments(args, 'levels import FILE [--force] [--json]', ABOUT, { force: { type: 'boolean' } })
  if (!parsed) return
  const scale = readLevels(JSON.parse(await readFile(parsed.positionals[0]!, 'utf8')))
  const replaced = await withDatabase(sql =>
    audited('levels import', () => levels.replace(sql, scale, parsed.values.force === true)),
  )
  print(replaced, parsed.values.json, `${replaced.levels} levels; ${replaced.removed} removed.`)
}
