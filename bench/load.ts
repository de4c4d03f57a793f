import { setTimeout as delay } from 'node:timers/promises'
import { type Answer, Connection } from './connection.ts'

export type Load = {
  /** The ports of the programs. The connections are divided equally among these ports. */
  ports: number[]
  connections: number
  /** The duration of the load. By default, the duration is not limited. */
  seconds?: number
  /** The number of requests to send. By default, the number is not limited. */
  count?: number
  /**
   * The number of requests per second. Without a rate, each connection sends its next request as soon as it has an
   * answer.
   */
  rate?: number
  /** Returns the next complete request: head and body. */
  next: () => string
  /** Checks an answer. @throws if the answer is wrong */
  check?: (answer: Answer) => void
  /** Whether a client that gets a 503 waits as long as `Retry-After` says, and then sends its request again. */
  mayRefuse?: boolean
}

export type LoadResult = {
  perSecond: number
  requests: number
  /** The number of answers with the status 503. They do not count in the other figures. */
  refused: number
  /** The latency of each request in milliseconds, in any order. */
  latencies: number[]
  /** The share of one core that the load generator (this process) used, from 0 to 1. */
  busy: number
}

/**
 * Puts a program under load. Without a rate, each connection sends its next request as soon as it has an answer. Such a
 * load measures the throughput. With a rate, each request has a due time that does not depend on earlier requests. If
 * no connection is free at the due time, the waiting time counts as latency. For example, a program pauses for 20 ms,
 * and a request is due 5 ms after the start of the pause. The latency of this request then includes the
 * remaining 15 ms.
 * @throws Error if the status of an answer is not 2xx, or if `check` throws
 */
export async function load(options: Load): Promise<LoadResult> {
  const { ports, connections, seconds = Number.POSITIVE_INFINITY, count = Number.POSITIVE_INFINITY } = options
  const pool = Array.from({ length: connections }, (_, index) => new Connection(ports[index % ports.length]!))
  const latencies: number[] = []
  const used = process.cpuUsage()
  const startedAt = performance.now()
  const period = { startedAt, endsAt: startedAt + seconds * 1000 }
  let refused = 0
  const exchange = async (connection: Connection, since: number) => {
    const request = options.next()
    let [answer, sentAt] = [await connection.send(request), since]
    while (options.mayRefuse && answer.retryAfter !== undefined) {
      refused += 1
      await delay(Math.min(answer.retryAfter * 1000, Math.max(0, period.endsAt - performance.now())))
      if (performance.now() >= period.endsAt) return
      sentAt = performance.now()
      answer = await connection.send(request)
    }
    latencies.push(performance.now() - sentAt)
    if (answer.status < 200 || answer.status > 299) throw new Error(`answered ${answer.status}: ${answer.body}`)
    options.check?.(answer)
  }
  try {
    await (options.rate
      ? runAtRate(pool, exchange, options.rate, period)
      : runClosedLoop(pool, exchange, period.endsAt, count))
  } finally {
    for (const connection of pool) connection.close()
  }
  const elapsed = performance.now() - startedAt
  const { user, system } = process.cpuUsage(used)
  const busy = (user + system) / 1000 / elapsed
  return { perSecond: (latencies.length / elapsed) * 1000, requests: latencies.length, refused, latencies, busy }
}

type Exchange = (connection: Connection, since: number) => Promise<void>

/** The start and the end of the load, in milliseconds of `performance.now()`. */
type Period = { startedAt: number; endsAt: number }

async function runClosedLoop(pool: Connection[], exchange: Exchange, endsAt: number, count: number): Promise<void> {
  let sent = 0
  await Promise.all(
    pool.map(async connection => {
      while (sent < count) {
        const now = performance.now()
        if (now >= endsAt) return
        sent += 1
        await exchange(connection, now)
      }
    }),
  )
}

/**
 * Sends all due requests once per millisecond. Node's timers cannot fire more often. The latency of a request starts
 * when this loop finds that the request is due.
 */
async function runAtRate(pool: Connection[], exchange: Exchange, rate: number, period: Period): Promise<void> {
  const idle = [...pool]
  const waiting: number[] = []
  const running = new Set<Promise<void>>()
  let fault: unknown
  const send = (connection: Connection, since: number): void => {
    const done = exchange(connection, since)
      .then(() => {
        const next = waiting.shift()
        if (next === undefined) idle.push(connection)
        else send(connection, next)
      })
      .catch(error => {
        fault = error
      })
      .finally(() => running.delete(done))
    running.add(done)
  }
  let due = 0
  for (let now = period.startedAt; now < period.endsAt && !fault; now = performance.now()) {
    for (const target = Math.floor(((now - period.startedAt) / 1000) * rate); due < target; due += 1) {
      const connection = idle.pop()
      if (connection) send(connection, now)
      else waiting.push(now)
    }
    await delay(1)
  }
  while (running.size > 0 && !fault) await Promise.all(running)
  if (fault) throw fault
}
