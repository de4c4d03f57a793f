import { EventEmitter } from 'node:events'
import type pg from 'pg'
import { Client, type ConnectionConfig, sendQuery } from './client.ts'
import { isStale, unreachableError } from './errors.ts'

/**
 * A connection that has owed a reply for this long gets no more statements. A transaction waits as long for a
 * connection.
 */
const STUCK_MS = 5_000

type Connection = {
  client: Client | undefined
  connected: Promise<unknown>
  statementsInFlight: number
  /**
   * Since when the connection owes its next reply, by `performance.now()`. Meaningless while no statement is in flight.
   */
  waitingSinceMs: number
}

/** Of a set of connections: how many are open, how many of these are idle, and how many statements wait. */
export type PoolStats = { total: number; idle: number; waiting: number }

/**
 * A few connections for single statements, each of which is a transaction. Statements do not queue for a free
 * connection: each goes to the connection with the fewest statements in flight. The statements of one turn of the event
 * loop leave in one write, and PostgreSQL reads them at once, which about halves the cost for both.
 *
 * Replies come in the order of the statements, so a statement that waits for a lock holds up those behind it. Therefore
 * a connection that has owed a reply for 5 s gets no more statements. When all connections are stuck like this, `query`
 * throws.
 *
 * Emits `connect` with each new client, as pg's pool does.
 */
export class Pipeline extends EventEmitter<{ connect: [Client] }> {
  readonly #config: ConnectionConfig
  readonly #connections: Connection[]
  #isEnded = false

  constructor(config: ConnectionConfig, connections: number) {
    super()
    this.#config = config
    this.#connections = Array.from({ length: connections }, () => ({
      client: undefined,
      connected: Promise.resolve(),
      statementsInFlight: 0,
      waitingSinceMs: 0,
    }))
  }

  stats(): PoolStats {
    const open = this.#connections.filter(({ client }) => client)
    return {
      total: open.length,
      idle: open.filter(({ statementsInFlight }) => statementsInFlight === 0).length,
      waiting: this.#connections.reduce((sum, { statementsInFlight }) => sum + Math.max(0, statementsInFlight - 1), 0),
    }
  }

  /** Runs a statement. @throws what `pg.Client#query` throws, and an unreachable error when no connection is usable */
  async query(statement: pg.QueryConfig): Promise<pg.QueryResult> {
    if (this.#isEnded) throw unreachableError('the pipeline has ended', 'ECONNABORTED')
    const connection = this.#choose()
    if (connection.statementsInFlight === 0) connection.waitingSinceMs = performance.now()
    connection.statementsInFlight += 1
    try {
      const client = connection.client ?? this.#open(connection)
      await connection.connected
      corkUntilNextTick(client)
      return await sendQuery(client, statement).catch(error => {
        if (isStale(error)) retire(connection, client)
        throw error
      })
    } finally {
      connection.statementsInFlight -= 1
      connection.waitingSinceMs = performance.now()
    }
  }

  /** Closes the connections once all statements have their replies. */
  async end(): Promise<void> {
    this.#isEnded = true
    // A connection that could not be opened needs no closing.
    await Promise.allSettled(this.#connections.map(({ client, connected }) => connected.then(() => client?.end())))
  }

  /** Returns the connection with the fewest statements in flight among those that are not stuck. */
  #choose(): Connection {
    const stuckBefore = performance.now() - STUCK_MS
    const usable = this.#connections.filter(
      ({ statementsInFlight, waitingSinceMs }) => statementsInFlight === 0 || waitingSinceMs > stuckBefore,
    )
    if (usable.length === 0) throw unreachableError('no connection has replied for 5 s', 'ETIMEDOUT')
    return usable.reduce((least, each) => (each.statementsInFlight < least.statementsInFlight ? each : least))
  }

  /**
   * Opens a client for a connection. When it is lost or cannot connect, it is retired, and the next statement opens
   * another.
   */
  #open(connection: Connection): Client {
    const client = new Client(this.#config)
    const onLost = () => retire(connection, client)
    client.on('error', onLost)
    client.on('end', onLost)
    connection.client = client
    connection.connected = client.connect()
    connection.connected.then(() => this.emit('connect', client), onLost)
    return client
  }
}

/** Sends nothing more on a client, which ends once it has the replies to what was sent. */
function retire(connection: Connection, client: Client): void {
  if (connection.client !== client) return
  connection.client = undefined
  void client.end()
}

/** Collects what is written in this turn of the event loop and sends it in one piece. */
function corkUntilNextTick({ connection: { stream } }: Client): void {
  if (stream.writableCorked > 0) return
  stream.cork()
  setImmediate(() => stream.uncork())
}
