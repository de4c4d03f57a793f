import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import * as codes from './auth/codes.ts'
import * as sessions from './auth/sessions.ts'
import type { Config } from './config.ts'
import type { Sql } from './db/sql.ts'
import * as eventLog from './games/event-log.ts'
import { pruneThrottle } from './limits/counter.ts'
import * as notifications from './notifications/notifications.ts'
import * as reach from './reach/personal-data.ts'

const DAY_MS = 86_400_000

/**
 * The maximum number of rows that one statement examines or deletes. With this limit, a statement keeps its locks for
 * only a few milliseconds.
 */
const BATCH_SIZE = 1_000

/**
 * The age at which the row of an event is deleted from the table `event`. While the row exists, the intake recognizes a
 * repeated event as a duplicate.
 */
const EVENT_RETENTION_DAYS = 90

/** The number of deleted rows per table. */
export type Pruned = Record<
  | 'notification'
  | 'sign_in_code'
  | 'sign_in_address'
  | 'sign_in_network'
  | 'session'
  | 'throttle'
  | 'event'
  | 'push_subscription'
  | 'digest_attempt'
  | 'waiting_mail',
  number
>

/**
 * Deletes rows that are past their retention. Each statement deletes a limited number of rows and commits. Several
 * processes may call this function at the same time.
 */
export async function prune(
  sql: Sql,
  { retentionReadDays, retentionDays }: Pick<Config, 'retentionReadDays' | 'retentionDays'>,
  now: Date,
): Promise<Pruned> {
  const daysAgo = (days: number) => new Date(now.getTime() - days * DAY_MS)
  // 0 days means that notifications are never deleted by age.
  const limits = {
    read: retentionReadDays ? daysAgo(retentionReadDays) : null,
    any: retentionDays ? daysAgo(retentionDays) : null,
  }
  await deleteAll(() => reach.forgetBounces(sql, BATCH_SIZE))
  return {
    notification: await notifications.prune(sql, limits, BATCH_SIZE),
    sign_in_code: await pruneCodes(sql, now),
    sign_in_address: await deleteAll(() => codes.pruneAddresses(sql, now, BATCH_SIZE)),
    sign_in_network: await deleteAll(() => codes.pruneNetworks(sql, now, BATCH_SIZE)),
    session: await deleteAll(() => sessions.prune(sql, now, BATCH_SIZE)),
    throttle: await deleteAll(() => pruneThrottle(sql, now, BATCH_SIZE)),
    event: await deleteAll(() => eventLog.prune(sql, daysAgo(EVENT_RETENTION_DAYS), BATCH_SIZE)),
    push_subscription: await deleteAll(() => reach.pruneSubscriptions(sql, now, BATCH_SIZE)),
    digest_attempt: await deleteAll(() => reach.pruneAttempts(sql, now, BATCH_SIZE)),
    waiting_mail: await deleteAll(() => reach.pruneWaiting(sql, now, BATCH_SIZE)),
  }
}

async function pruneCodes(sql: Sql, now: Date): Promise<number> {
  await deleteAll(() => codes.pruneSignUps(sql, now, BATCH_SIZE))
  return deleteAll(() => codes.pruneCodes(sql, now, BATCH_SIZE))
}

/**
 * Calls `deleteBatch` until a call deletes or changes fewer rows than a full batch.
 * @returns the number of these rows in all calls
 */
async function deleteAll(deleteBatch: () => Promise<number>): Promise<number> {
  let total = 0
  for (;;) {
    const count = await deleteBatch()
    total += count
    if (count < BATCH_SIZE) return total
  }
}

/**
 * Starts a loop that calls `prune` once a day until `stop` is called. The first call comes five minutes after startup.
 * So old rows are deleted even if the process never runs for a whole day.
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
        error => log.error({ err: error }, 'could not delete old rows; the next attempt is in a day'),
      )
    }
  }
  // The loop ends only when `stop` aborts the delay. The aborted delay rejects, and this handler ignores the rejection.
  run().catch(() => {})
  return { stop: async () => stopping.abort() }
}
