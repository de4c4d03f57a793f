import { prune } from '../retention.ts'
import { withDatabase } from './resolve-database.ts'
import { print, readArguments } from './usage.ts'

const ABOUT = `Deletes what is past its retention, as a worker does by itself once a day: notifications (RETENTION_READ_DAYS,
RETENTION_DAYS), codes, sessions, throttle counters and event records. It can run beside the service.`

/** `courtside prune` */
export async function run(args: string[]): Promise<void> {
  const read = readArguments(args, 'prune [--json]', ABOUT)
  if (!read) return
  const pruned = await withDatabase((sql, config) => prune(sql, config, new Date()))
  const words = Object.entries(pruned).map(([table, count]) => `${table.padEnd(20)} ${count}`)
  print(pruned, read.values.json, words.join('\n'))
}
