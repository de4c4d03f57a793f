import { EventEmitter } from 'node:events'
import type pg from 'pg'
import { Client, type ConnectionConfig, sendQuery } from './client.ts'
import { isStale, unreachableError } from './errors.ts'

/** How long a connection may owe an answer and still be sent more; a transaction waits as long for one of its own. */
const STUCK_MS = 5_000

type Connection = {
  client: Client | undefined
  opened: Promise<unknown>
  inFlight: number
  /** Since when it owes the next answer, if it owes any. */
  owingSince: number
}

/** Of connections: how many there are, how many of them rest, and how many statements wait for one. */
export type PoolStats = { total: number; idle: number; waiting: number }

/**
 * A few connections for statements that are each a transaction of its own. One more than there are connections isn't kept until
 * one is free, but sent to where the fewest are before it; and what is asked in one turn of the event loop leaves in one write and
 * is read in one by PostgreSQL. That costs both of them about half.
 *
 * Answers come in the order of the statements: one that waits for a lock keeps those behind it waiting. So none is sent behind one
 * that has waited for 5 s already; and when all connections are stuck like that, the next is refused.
 *
 * Emits `connect` with each new client, as pg's pool does.
 */
export class Pipeline extends EventEmitter<{ connect: [Client] }> {
  readonly #config: ConnectionConfig
  readonly #lines: Connection[]
  #ended = false

  constructor(config: ConnectionConfig, connections: number) {
    super()
    this.#config = config
    this.#lines = Array.from({ length: connections }, () => ({
      client: undefined,
      opened: Promise.resolve(),
      inFlight: 0,
      owingSince: 0,
    }))
  }

  stats(): PoolStats {
    const open = this.#lines.filter(({ client }) => client)
    return {
      total: open.length,
      idle: open.filter(({ inFlight }) => inFlight === 0).length,
      waiting: this.#lines.reduce((sum, { inFlight }) => sum + Math.max(0, inFlight - 1), 0),
    }
  }

  /** Runs a statement. @throws what `pg.Client#query` throws, and the like when no connection is of use */
  async query(statement: pg.QueryConfig): Promise<pg.QueryResult> {
    if (this.#ended) throw unreachableError('the pipeline has ended', 'ECONNABORTED')
    const line = this.#choose()
    if (line.inFlight === 0) line.owingSince = performance.now()
    line.inFlight += 1
    try {
      const client = line.client ?? this.#open(line)
      await line.opened
      corkUntilNextTick(client)
      return await sendQuery(client, statement).catch(error => {
        if (isStale(error)) retire(line, client)
        throw error
      })
    } finally {
      line.inFlight -= 1
      line.owingSince = performance.now()
    }
  }

  /** Closes the connections, once what was asked has been answered. */
  async end(): Promise<void> {
    this.#ended = true
    // One that could not be opened needs no closing.
    await Promise.allSettled(this.#lines.map(({ client, opened }) => opened.then(() => client?.end())))
  }

  /** Of those that aren't stuck the one with the fewest in flight. */
  #choose(): Connection {
    const stuck = performance.now() - STUCK_MS
    const lines = this.#lines.filter(({ inFlight, owingSince }) => inFlight === 0 || owingSince > stuck)
    if (lines.length === 0) throw unreachableError('no connection has answered for 5 s', 'ETIMEDOUT')
    return lines.reduce((least, each) => (each.inFlight < least.inFlight ? each : least))
  }

  /** A connection that is lost, or can't be had, is left: the next statement opens another. */
  #open(line: Connection): Client {
    const client = new Client(this.#config)
    const left = () => retire(line, client)
    client.on('error', left)
    client.on('end', left)
    line.client = client
    line.opened = client.connect()
    line.opened.then(() => this.emit('connect', client), left)
    return client
  }
}

/** Sends nothing more on a connection, which ends once it has answered what was asked. */
function retire(line: Connection, client: Client): void {
  if (line.client !== client) return
  line.client = undefined
  void client.end()
}

/** Keeps what is written until this turn of the event loop is over, so that it leaves together. */
function corkUntilNextTick({ connection: { stream } }: Client): void {
  if (stream.writableCorked > 0) return
  stream.cork()
  setImmediate(() => stream.uncork())
}
