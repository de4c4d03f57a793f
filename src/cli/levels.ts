import { readFile } from 'node:fs/promises'
import { readLevels } from '../accounts/import-levels.ts'
import * as levels from '../accounts/levels.ts'
import { withDatabase } from './resolve-database.ts'
import { print, readArguments, UsageError } from './usage.ts'

const ABOUT = `FILE is a JSON array of {"slug", "name", "description", "position"}. It replaces the scale: levels are known by
their slug, those that it doesn't name are removed. If somebody has chosen one of these, nothing is changed, unless
--force takes their choice away.`

/** `courtside levels list|import` */
export async function run([action = '', ...args]: string[]): Promise<void> {
  if (action === 'list') return listLevels(args)
  if (action === 'import') return importLevels(args)
  throw new UsageError('Usage: npm run courtside -- levels list|import FILE [--force] [--json]')
}

async function listLevels(args: string[]): Promise<void> {
  const read = readArguments(args, 'levels list [--json]', 'Lists the game levels.')
  if (!read) return
  const found = await withDatabase(sql => levels.list(sql))
  const words = found.map(({ position, slug, name }) => `${String(position).padStart(3)}  ${slug.padEnd(24)} ${name}`)
  print(found, read.values.json, words.join('\n'))
}

async function importLevels(args: string[]): Promise<void> {
  const read = readArguments(args, 'levels import FILE [--force] [--json]', ABOUT, { force: { type: 'boolean' } })
  if (!read) return
  const scale = readLevels(JSON.parse(await readFile(read.words[0]!, 'utf8')))
  const replaced = await withDatabase(sql => levels.replace(sql, scale, read.values.force === true))
  print(replaced, read.values.json, `${replaced.levels} levels; ${replaced.removed} removed.`)
}
