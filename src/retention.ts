import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import * as codes from './auth/codes.ts'
import * as sessions from './auth/sessions.ts'
import type { Config } from './config.ts'
import type { Sql } from './db/sql.ts'
import * as eventLog from './games/event-log.ts'
import { pruneThrottle } from './limits/throttle.ts'
import * as notifications from './notifications/notifications.ts'

const DAY_MS = 86_400_000

/** How many rows a statement looks at: it holds its locks for some milliseconds. */
const BATCH = 1_000

/** How long a reported fact is remembered, since it guards against repeats. */
const EVENT_DAYS = 90

/** How many rows went, by table. */
export type Pruned = Record<'notification' | 'sign_in_address' | 'session' | 'throttle' | 'event', number>

/** Deletes what is past its retention, in small statements that commit one by one. Several at once do no harm. */
export async function prune(
  sql: Sql,
  { retentionReadDays, retentionDays }: Pick<Config, 'retentionReadDays' | 'retentionDays'>,
  now: Date,
): Promise<Pruned> {
  const ago = (days: number) => new Date(now.getTime() - days * DAY_MS)
  // "both configurable, 0 keeps"
  const limits = {
    read: retentionReadDays ? ago(retentionReadDays) : null,
    any: retentionDays ? ago(retentionDays) : null,
  }
  return {
    notification: await notifications.prune(sql, limits, BATCH),
    sign_in_address: await repeated(() => codes.prune(sql, now, BATCH)),
    session: await repeated(() => sessions.prune(sql, now, BATCH)),
    throttle: await repeated(() => pruneThrottle(sql, now, BATCH)),
    event: await repeated(() => eventLog.prune(sql, ago(EVENT_DAYS), BATCH)),
  }
}

/** Until a batch comes back less than full. */
async function repeated(batch: () => Promise<number>): Promise<number> {
  let total = 0
  for (;;) {
    const count = await batch()
    total += count
    if (count < BATCH) return total
  }
}

/**
 * Prunes once a day while the process lives, the first time some minutes after its start: a process that is restarted more
 * often than daily must prune too.
 */
export function startPruning(
  sql: Sql,
  config: Config,
  now: () => Date,
  log: FastifyBaseLogger,
): { stop(): Promise<void> } {
  const stopping = new AbortController()
  async function run(): Promise<void> {
    for (let wait = 5 * 60_000; ; wait = DAY_MS) {
      await delay(wait, undefined, { signal: stopping.signal, ref: false })
      await prune(sql, config, now()).then(
        pruned => log.info(pruned, 'pruned'),
        error => log.error({ err: error }, 'could not prune; tomorrow again'),
      )
    }
  }
  // It ends by being told to stop, and in no other way.
  run().catch(() => {})
  return { stop: async () => stopping.abort() }
}
