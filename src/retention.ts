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

/** How many rows one statement examines. It then keeps its locks for a few milliseconds only. */
const BATCH_SIZE = 1_000

/** How long an event is recorded. The record makes a repeat of the event a duplicate. */
const EVENT_RETENTION_DAYS = 90

/** How many rows were deleted, by table. */
export type Pruned = Record<'notification' | 'sign_in_address' | 'session' | 'throttle' | 'event', number>

/**
 * Deletes rows that are past their retention, in small statements that commit one by one. Several processes may call it
 * at once.
 */
export async function prune(
  sql: Sql,
  { retentionReadDays, retentionDays }: Pick<Config, 'retentionReadDays' | 'retentionDays'>,
  now: Date,
): Promise<Pruned> {
  const daysAgo = (days: number) => new Date(now.getTime() - days * DAY_MS)
  // "both configurable, 0 keeps"
  const limits = {
    read: retentionReadDays ? daysAgo(retentionReadDays) : null,
    any: retentionDays ? daysAgo(retentionDays) : null,
  }
  return {
    notification: await notifications.prune(sql, limits, BATCH_SIZE),
    sign_in_address: await deleteAll(() => codes.prune(sql, now, BATCH_SIZE)),
    session: await deleteAll(() => sessions.prune(sql, now, BATCH_SIZE)),
    throttle: await deleteAll(() => pruneThrottle(sql, now, BATCH_SIZE)),
    event: await deleteAll(() => eventLog.prune(sql, daysAgo(EVENT_RETENTION_DAYS), BATCH_SIZE)),
  }
}

/** Runs a batch until one deletes less than a full batch. @returns how many rows all batches deleted */
async function deleteAll(batch: () => Promise<number>): Promise<number> {
  let total = 0
  for (;;) {
    const count = await batch()
    total += count
    if (count < BATCH_SIZE) return total
  }
}

/**
 * Prunes once a day while the process runs. The first time comes five minutes after the start, so a process that
 * restarts more often than daily prunes too.
 */
export function startPruning(
  sql: Sql,
  config: Config,
  now: () => Date,
  log: FastifyBaseLogger,
): { stop(): Promise<void> } {
  const stopping = new AbortController()
  async function run(): Promise<void> {
    for (let waitMs = 5 * 60_000; ; waitMs = DAY_MS) {
      await delay(waitMs, undefined, { signal: stopping.signal, ref: false })
      await prune(sql, config, now()).then(
        pruned => log.info(pruned, 'pruned'),
        error => log.error({ err: error }, 'could not prune; the next try is in a day'),
      )
    }
  }
  // The loop ends only when `stop` aborts the delay, which rejects.
  run().catch(() => {})
  return { stop: async () => stopping.abort() }
}
