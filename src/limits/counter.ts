import { createRequire } from 'node:module'
import type { RateLimiterPostgres as Limiter, RateLimiterRes as State } from 'rate-limiter-flexible'
import { rethrowAsUnavailable } from '../db/errors.ts'
import type { Sql, Statements } from '../db/sql.ts'

// We load two files of rate-limiter-flexible directly. The main file of the package would load the code for two dozen
// other databases too.
const require = createRequire(import.meta.url)
const RateLimiterPostgres: typeof Limiter = require('rate-limiter-flexible/lib/RateLimiterPostgres.js')
const RateLimiterRes: typeof State = require('rate-limiter-flexible/lib/RateLimiterRes.js')

export const WINDOW_SECONDS = 60

/** The longest time before the end of a window, if the clock of its process was at most 60 s ahead. */
const MAX_MS_BEFORE_END = 2 * WINDOW_SECONDS * 1000

/** A counter of requests: its table, the limiter with its limit, and the key of the counter. */
export type Counter = { sql: Statements; limiter: Limiter; key: string }

export type Outcome = { isRefused: boolean; state: State }

export function createLimiter({ pipeline }: Statements, name: string, limit: number): Limiter {
  return new RateLimiterPostgres({
    storeClient: pipeline,
    storeType: 'pool',
    tableName: 'throttle',
    tableCreated: true,
    clearExpiredByTimeout: false,
    keyPrefix: name,
    points: limit,
    duration: WINDOW_SECONDS,
    // After a client has exceeded the limit, the process refuses all requests of the client until the window ends. The
    // process does not query the database for these requests.
    inMemoryBlockOnConsumed: limit + 1,
  })
}

/** Counts a request. @throws AppError 503 if the service cannot reach the database */
export async function consume(counter: Counter): Promise<Outcome> {
  const outcome = await consumeOnce(counter)
  if (!isAhead(outcome.state)) return outcome
  await deleteAhead(counter)
  return consumeOnce(counter)
}

/**
 * Returns whether a counter's window begins more than 60 s in the future. The clock of the process that made the window
 * was ahead, so the window counts as over.
 */
function isAhead({ msBeforeNext }: State): boolean {
  return msBeforeNext > MAX_MS_BEFORE_END
}

/** Deletes a counter whose window begins in the future. A concurrent request may already have started a new counter. */
async function deleteAhead({ sql, limiter, key }: Counter): Promise<void> {
  await sql`delete from throttle where key = ${limiter.getKey(key)} and expire > ${Date.now() + MAX_MS_BEFORE_END}`
  limiter.deleteInMemoryBlockedAll()
}

async function consumeOnce({ limiter, key }: Counter): Promise<Outcome> {
  try {
    return { isRefused: false, state: await limiter.consume(key) }
  } catch (outcome) {
    if (outcome instanceof RateLimiterRes) return { isRefused: true, state: outcome }
    return rethrowAsUnavailable(outcome)
  }
}

/** Reads a counter without counting a request. */
export async function peek({ limiter, key }: Counter): Promise<Outcome> {
  const state = await limiter.get(key).catch(rethrowAsUnavailable)
  if (!state || isAhead(state))
    return { isRefused: false, state: new RateLimiterRes(limiter.points, WINDOW_SECONDS * 1000) }
  return { isRefused: state.consumedPoints >= limiter.points, state }
}

/**
 * Deletes counters whose window has ended.
 * @param limit the maximum number of counters to delete
 * @returns the number of deleted counters
 */
export async function pruneThrottle(sql: Sql, now: Date, limit: number): Promise<number> {
  const deleted = await sql`
    delete from throttle where key in (select key from throttle where expire < ${now.getTime()} limit ${limit})
    returning key`
  return deleted.length
}
