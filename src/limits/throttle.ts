import { createRequire } from 'node:module'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { RateLimiterPostgres as Limiter, RateLimiterRes as Outcome } from 'rate-limiter-flexible'
import { rethrowAsUnavailable } from '../db/errors.ts'
import type { Sql, Statements } from '../db/sql.ts'
import { AppError } from '../errors.ts'
import { clientKey } from '../http/client-address.ts'

// We load two files of rate-limiter-flexible directly. The main file of the package would load the code for two dozen
// other databases too.
const require = createRequire(import.meta.url)
const RateLimiterPostgres: typeof Limiter = require('rate-limiter-flexible/lib/RateLimiterPostgres.js')
const RateLimiterRes: typeof Outcome = require('rate-limiter-flexible/lib/RateLimiterRes.js')

const WINDOW_SECONDS = 60

/**
 * Creates a hook that limits the number of requests that each client can send to a route in a window of 60 s. The
 * window starts with the client's first request. The counters are in the database. So all processes share the counters,
 * and a restart does not reset them. The hook adds the rate-limit headers to every answer of the route.
 * @param name the first part of a counter's key in the table `throttle`; each route needs its own name
 * @param limit the number of permitted requests per window
 * @returns the hook. It throws AppError 429 if the client is over the limit, and AppError 503 if the service cannot
 *   reach the database
 */
export function throttle(sql: Statements, name: string, limit: number) {
  const limiter = createLimiter(sql, name, limit)
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const { refused, state } = await consume(limiter, clientKey(request))
    const seconds = Math.ceil(state.msBeforeNext / 1000)
    const remaining = refused ? 0 : state.remainingPoints
    reply.headers({
      'x-ratelimit-limit': limit,
      'x-ratelimit-remaining': remaining,
      ratelimit: `"otp";r=${remaining};t=${seconds}`,
      'ratelimit-policy': `"otp";q=${limit};w=${WINDOW_SECONDS}`,
    })
    if (refused) throw tooManyRequests(state)
  }
}

/**
 * Creates a function that counts a request under any key, such as the id of a session. Everything else is as in
 * `throttle`, but the answers get no rate-limit headers.
 * @returns the function. It throws the same errors as the hook of `throttle`
 */
export function createLimit(sql: Statements, name: string, limit: number) {
  const limiter = createLimiter(sql, name, limit)
  return async (key: string): Promise<void> => {
    const { refused, state } = await consume(limiter, key)
    if (refused) throw tooManyRequests(state)
  }
}

function createLimiter({ pipeline }: Statements, name: string, limit: number): Limiter {
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

async function consume(limiter: Limiter, key: string) {
  try {
    return { refused: false, state: await limiter.consume(key) }
  } catch (outcome) {
    if (outcome instanceof RateLimiterRes) return { refused: true, state: outcome }
    return rethrowAsUnavailable(outcome)
  }
}

function tooManyRequests({ msBeforeNext }: Outcome): AppError {
  const seconds = Math.ceil(msBeforeNext / 1000)
  const endsAtMs = Date.now() + msBeforeNext
  return new AppError(
    'throttled',
    { fr: 'Trop de tentatives. Réessayez dans un instant.', en: 'Too many attempts. Try again shortly.' },
    { headers: { 'retry-after': String(seconds), 'x-ratelimit-reset': String(Math.ceil(endsAtMs / 1000)) } },
  )
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
