import { setTimeout as delay } from 'node:timers/promises'
import { type Answer, Connection } from './connection.ts'

export type Load = {
  /** Where the connections go, by turns. */
  ports: number[]
  connections: number
  /** For how long, or how many requests. */
  seconds?: number
  count?: number
  /** Requests a second; absent: as many as are answered. */
  rate?: number
  /** The next request, head and body. */
  next: () => string
  /** What is to be done with an answer. @throws when it isn't the right one */
  check?: (answer: Answer) => void
}

export type LoadResult = {
  perSecond: number
  requests: number
  /** Milliseconds, of each request; in no order. */
  latencies: number[]
  /** How much of one core the generator itself has used, 0 to 1. */
  busy: number
}

/**
 * Loads a program. Without a rate each connection sends as soon as it was answered: that finds the throughput. With one,
 * requests are due at their times whatever became of the earlier ones, and one that finds no connection free waits from
 * then on: so a program that stands still for a moment is charged with all who came meanwhile.
 * @throws when an answer is no 2xx, or `check` throws
 */
export async function load(options: Load): Promise<LoadResult> {
  const { ports, connections, seconds = Number.POSITIVE_INFINITY, count = Number.POSITIVE_INFINITY } = options
  const pool = Array.from({ length: connections }, (_, index) => new Connection(ports[index % ports.length]!))
  const latencies: number[] = []
  const used = process.cpuUsage()
  const began = performance.now()
  const end = began + seconds * 1000
  const exchange = async (connection: Connection, since: number) => {
    const answer = await connection.send(options.next())
    latencies.push(performance.now() - since)
    if (answer.status < 200 || answer.status > 299) throw new Error(`answered ${answer.status}: ${answer.body}`)
    options.check?.(answer)
  }
  try {
    await (options.rate ? runAtRate(pool, exchange, options.rate, began, end) : runClosedLoop(pool, exchange, end, count))
  } finally {
    for (const connection of pool) connection.close()
  }
  const elapsed = performance.now() - began
  const { user, system } = process.cpuUsage(used)
  const busy = (user + system) / 1000 / elapsed
  return { perSecond: (latencies.length / elapsed) * 1000, requests: latencies.length, latencies, busy }
}

type Exchange = (connection: Connection, since: number) => Promise<void>

async function runClosedLoop(pool: Connection[], exchange: Exchange, end: number, count: number): Promise<void> {
  let sent = 0
  await Promise.all(
    pool.map(async connection => {
      while (sent < count) {
        const now = performance.now()
        if (now >= end) return
        sent += 1
        await exchange(connection, now)
      }
    }),
  )
}

/** Looks every millisecond at what is due: finer than that no timer is, and a request is due when it was looked at. */
async function runAtRate(pool: Connection[], exchange: Exchange, rate: number, began: number, end: number): Promise<void> {
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
  for (let now = began; now < end && !fault; now = performance.now()) {
    for (const target = Math.floor(((now - began) / 1000) * rate); due < target; due += 1) {
      const connection = idle.pop()
      if (connection) send(connection, now)
      else waiting.push(now)
    }
    await delay(1)
  }
  while (running.size > 0 && !fault) await Promise.all(running)
  if (fault) throw fault
}
