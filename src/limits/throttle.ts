import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Query } from '../db/sql.ts'
import { AppError } from '../errors.ts'
import { clientKey } from '../http/client-address.ts'
import { type Counter, createCounters, type Outcome, WINDOW_SECONDS } from './counter.ts'
import { findNetwork } from './network.ts'
import type { Networks } from './network-key.ts'

/** A network may send this many times the requests of one client. A shared network gets the same factor once more. */
const NETWORK_FACTOR = 20

type Options = {
  sql: Query
  now: () => Date
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
export function createThrottle({ sql, now, networks, isShared, name, limit }: Options) {
  const counters = createCounters(sql, now)

  async function findCounters(request: FastifyRequest): Promise<[client: Counter, network: Counter]> {
    const client = clientKey(request)
    const [hash, network] = await Promise.all([networks.hashText(`client ${client}`), networks.hashNetwork(client)])
    const clientLimit = isShared(request) ? limit * NETWORK_FACTOR : limit
    return [
      { key: `${name}:client:${hash.toString('base64url')}`, limit: clientLimit },
      { key: `${name}:network:${network.toString('base64url')}`, limit: clientLimit * NETWORK_FACTOR },
    ]
  }

  /** Adds the rate-limit headers to an answer. @param limit the limit that the headers name. @throws AppError 429 */
  function finish(reply: FastifyReply, { limit }: Counter, { isRefused, remaining, msUntilEnd }: Outcome): void {
    const seconds = Math.ceil(msUntilEnd / 1000)
    reply.headers({
      'x-ratelimit-limit': limit,
      'x-ratelimit-remaining': isRefused ? 0 : remaining,
      ratelimit: `"otp";r=${isRefused ? 0 : remaining};t=${seconds}`,
      'ratelimit-policy': `"otp";q=${limit};w=${WINDOW_SECONDS}`,
    })
    if (isRefused) throw tooManyRequests(msUntilEnd, now())
  }

  return {
    /**
     * Counts a request and adds the rate-limit headers to its answer.
     * @throws AppError 429 if the client or its network is over the limit
     * @throws AppError 503 if the service cannot reach the database
     */
    async count(request: FastifyRequest, reply: FastifyReply): Promise<void> {
      const [client, network] = await findCounters(request)
      finish(reply, client, await counters.count(client, network))
    },

    /**
     * Counts a request of a known client, like `count`, but for the pair of its session and its network. So requests of
     * neighbours do not count for this client. Requests of a thief in another network, who has an old token of the
     * session, do not count either.
     */
    async countSession(request: FastifyRequest, reply: FastifyReply, sessionId: string): Promise<void> {
      const hash = await networks.hashText(`session ${sessionId} ${findNetwork(clientKey(request))}`)
      const session = { key: `${name}:session:${hash.toString('base64url')}`, limit }
      finish(reply, session, await counters.count(session))
    },

    /** Refuses a request if its client or network is over the limit, like `count`, but does not count the request. */
    async check(request: FastifyRequest, reply: FastifyReply): Promise<void> {
      const [client, network] = await findCounters(request)
      finish(reply, client, await counters.peek(client, network))
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
export function createLimit(sql: Query, now: () => Date, name: string, limit: number) {
  const counters = createCounters(sql, now)
  return async (key: string): Promise<void> => {
    const { isRefused, msUntilEnd } = await counters.count({ key: `${name}:${key}`, limit })
    if (isRefused) throw tooManyRequests(msUntilEnd, now())
  }
}

function tooManyRequests(msUntilEnd: number, now: Date): AppError {
  return new AppError(
    'throttled',
    { fr: 'Trop de tentatives. Réessayez dans un instant.', en: 'Too many attempts. Try again shortly.' },
    {
      headers: {
        'retry-after': String(Math.ceil(msUntilEnd / 1000)),
        'x-ratelimit-reset': String(Math.ceil((now.getTime() + msUntilEnd) / 1000)),
      },
    },
  )
}
