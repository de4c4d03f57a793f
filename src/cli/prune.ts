import { readDatabaseTime } from '../db/clock.ts'
import { prune } from '../retention.ts'
import { audited } from './audited.ts'
import { withDatabase } from './resolve-database.ts'
import { print, readArguments } from './usage.ts'

const ABOUT = `Deletes rows that are past their retention: notifications (RETENTION_READ_DAYS, RETENTION_DAYS), codes,
sessions, throttle counters and event records. A worker does the same once a day. The command can run while the
service is running.`

/** `courtside prune` */
export async function run(args: string[]): Promise<void> {
  const parsed = readArguments(args, 'prune [--json]', ABOUT)
  if (!parsed) return
  const pruned = await withDatabase((sql, config) =>
    audited('prune', async () => prune(sql, config, await readDatabaseTime(sql))),
  )
  const lines = Object.entries(pruned).map(([table, count]) => `${table.padEnd(20)} ${count}`)
  print(pruned, parsed.values.json, lines.join('\n'))
}
