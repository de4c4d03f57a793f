import type { FastifyReply, FastifyRequest } from 'fastify'
import type { RateLimiterRes as State } from 'rate-limiter-flexible'
import type { Statements } from '../db/sql.ts'
import { AppError } from '../errors.ts'
import { clientKey } from '../http/client-address.ts'
import { type Counter, consume, createLimiter, type Outcome, peek, WINDOW_SECONDS } from './counter.ts'
import { findNetwork } from './network.ts'
import type { Networks } from './network-key.ts'

/** A network may send this many times the requests of one client. A shared network gets the same factor once more. */
const NETWORK_FACTOR = 20

type Options = {
  sql: Statements
  networks: Networks
  /** Returns whether a request comes from a network that many people share, such as the Wi-Fi of a club. */
  isShared(request: FastifyRequest): boolean
  /** The first part of the keys in the table `throttle`. Each route needs another name. */
  name: string
  /** The number of requests that a client may send in a window. */
  limit: number
}

/**
 * Creates the throttle of a route. In a window of 60 s, a client may send `limit` requests, and a network may send 20
 * times as many. A window starts with the first request. The counters are in the database. So all processes share the
 * counters, and a restart does not reset them. The keys of the counters are keyed hashes, so the table
 * contains no network address.
 */
export function createThrottle({ sql, networks, isShared, name, limit }: Options) {
  const createLimiters = (factor: number) => ({
    client: createLimiter(sql, `${name}:client`, limit * factor),
    network: createLimiter(sql, `${name}:network`, limit * factor * NETWORK_FACTOR),
  })
  const [usual, shared] = [createLimiters(1), createLimiters(NETWORK_FACTOR)]
  const perSession = createLimiter(sql, `${name}:session`, limit)

  async function findCounters(request: FastifyRequest): Promise<Counter[]> {
    const client = clientKey(request)
    const [hash, network] = await Promise.all([networks.hashText(`client ${client}`), networks.hashNetwork(client)])
    const limiters = isShared(request) ? shared : usual
    return [
      { sql, limiter: limiters.client, key: hash.toString('base64url') },
      { sql, limiter: limiters.network, key: network.toString('base64url') },
    ]
  }

  return {
    /**
     * Counts a request and adds the rate-limit headers to its answer.
     * @throws AppError 429 if the client or its network is over the limit
     * @throws AppError 503 if the service cannot reach the database
     */
    async count(request: FastifyRequest, reply: FastifyReply): Promise<void> {
      const counters = await findCounters(request)
      finish(reply, counters, await consumeAll(counters))
    },

    /**
     * Counts a request of a known client, like `count`, but for the pair of its session and its network. So requests of
     * neighbours do not count for this client. Requests of a thief in another network, who has an old token of the
     * session, do not count either.
     */
    async countSession(request: FastifyRequest, reply: FastifyReply, sessionId: string): Promise<void> {
      const hash = await networks.hashText(`session ${sessionId} ${findNetwork(clientKey(request))}`)
      const counters = [{ sql, limiter: perSession, key: hash.toString('base64url') }]
      finish(reply, counters, await consumeAll(counters))
    },

    /** Refuses a request if its client or network is over the limit, like `count`, but does not count the request. */
    async check(request: FastifyRequest, reply: FastifyReply): Promise<void> {
      const counters = await findCounters(request)
      finish(reply, counters, findStrictest(await Promise.all(counters.map(peek))))
    },
  }
}

/**
 * Creates a function that counts a request under any key, such as the id of a session. The answers get no rate-limit
 * headers.
 * @param name the first part of the key in the table `throttle`
 * @returns the function. It throws AppError 429 if the key is over the limit, and AppError 503 if the service cannot
 *   reach the database
 */
export function createLimit(sql: Statements, name: string, limit: number) {
  const limiter = createLimiter(sql, name, limit)
  return async (key: string): Promise<void> => {
    const { isRefused, state } = await consume({ sql, limiter, key })
    if (isRefused) throw tooManyRequests(state)
  }
}

/**
 * Counts a request in each counter in turn. The first counter that is over its limit refuses the request. The counters
 * before it then do not count the request.
 */
async function consumeAll(counters: readonly Counter[]): Promise<Outcome> {
  const outcomes: Outcome[] = []
  for (const [index, counter] of counters.entries()) {
    const outcome = await consume(counter)
    if (outcome.isRefused) {
      await Promise.all(counters.slice(0, index).map(({ limiter, key }) => limiter.reward(key)))
      return outcome
    }
    outcomes.push(outcome)
  }
  return findStrictest(outcomes)
}

function findStrictest(outcomes: readonly Outcome[]): Outcome {
  return outcomes.reduce((one, other) => (other.state.remainingPoints < one.state.remainingPoints ? other : one))
}

/** Adds the rate-limit headers to an answer. They name the limit of the first counter. @throws AppError 429 */
function finish(reply: FastifyReply, counters: readonly Counter[], { isRefused, state }: Outcome): void {
  const limit = counters[0]!.limiter.points
  const seconds = Math.ceil(state.msBeforeNext / 1000)
  const remaining = isRefused ? 0 : state.remainingPoints
  reply.headers({
    'x-ratelimit-limit': limit,
    'x-ratelimit-remaining': remaining,
    ratelimit: `"otp";r=${remaining};t=${seconds}`,
    'ratelimit-policy': `"otp";q=${limit};w=${WINDOW_SECONDS}`,
  })
  if (isRefused) throw tooManyRequests(state)
}

function tooManyRequests({ msBeforeNext }: State): AppError {
  const seconds = Math.ceil(msBeforeNext / 1000)
  const endsAtMs = Date.now() + msBeforeNext
  return new AppError(
    'throttled',
    { fr: 'Trop de tentatives. Réessayez dans un instant.', en: 'Too many attempts. Try again shortly.' },
    { headers: { 'retry-after': String(seconds), 'x-ratelimit-reset': String(Math.ceil(endsAtMs / 1000)) } },
  )
}
