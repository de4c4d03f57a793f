import { EventEmitter } from 'node:events'
import type pg from 'pg'
import { Client, type ConnectionConfig, closeUnlessReplied, cork, sendQuery } from './client.ts'
import { isStale, unreachableError } from './errors.ts'

/**
 * A connection that has waited 5 s for a reply gets no more statements. The pool for transactions has the same limit: a
 * transaction waits at most 5 s for a free connection (`connectionTimeoutMillis` in connection-config.ts).
 */
const STUCK_MS = 5_000

/** The minimum time between two attempts to open a connection while another connection works. */
const REOPEN_MS = 1_000

/** After this time without a statement, the first statement on a connection checks that the server still replies. */
const CHECK_AFTER_IDLE_MS = 15_000

type Connection = {
  client: Client | undefined
  connected: Promise<unknown>
  /** Whether `client` is connected. */
  isReady: boolean
  /** The time, by `performance.now()`, of the last attempt to open the connection. */
  openedAtMs: number
  statementsInFlight: number
  /**
   * The time, by `performance.now()`, at which the wait for the next reply began. While no statement is in flight, the
   * time at which the last reply arrived.
   */
  waitingSinceMs: number
}

/**
 * The load of a set of connections. `total` counts the open connections. `idle` counts the open connections that run no
 * statement. `waiting` counts the statements that wait behind another statement on their connection.
 */
export type PoolStats = { total: number; idle: number; waiting: number }

/**
 * Runs single statements on a few connections. Each statement is its own transaction. Statements do not queue for a
 * free connection. Each statement goes to the connection with the fewest statements in flight. The statements from one
 * turn of the event loop are sent together, and PostgreSQL reads them together. Sending statements together about
 * halves their cost, both in this process and in PostgreSQL.
 *
 * Replies arrive in the order of the statements. So a statement that waits for a lock delays the statements behind it.
 * Therefore a connection that has waited 5 s for a reply gets no more statements. If every connection has waited 5 s,
 * `query` throws.
 *
 * A firewall or a proxy can forget an idle connection without closing it. So the first statement after 15 s checks the
 * connection, and the connection is closed if no reply arrives within 5 s.
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
      isReady: false,
      openedAtMs: Number.NEGATIVE_INFINITY,
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

  /**
   * Runs a statement.
   * @throws the errors of `pg.Client#query`
   * @throws an error that `isUnreachable` recognizes, if every connection has waited 5 s for a reply
   */
  async query(statement: pg.QueryConfig): Promise<pg.QueryResult> {
    if (this.#isEnded) throw unreachableError('the pipeline has ended', 'ECONNABORTED')
    const connection = this.#choose()
    const wasIdleMs = connection.statementsInFlight === 0 ? performance.now() - connection.waitingSinceMs : 0
    if (connection.statementsInFlight === 0) connection.waitingSinceMs = performance.now()
    connection.statementsInFlight += 1
    try {
      const client = connection.client ?? this.#open(connection)
      const needsCheck = connection.isReady && wasIdleMs > (this.#config.checkAfterIdleMs ?? CHECK_AFTER_IDLE_MS)
      await connection.connected
      cork(client, setImmediate)
      // The server replies to this statement before it runs the next statement. So the check also works if the next
      // statement is slow.
      if (needsCheck) void closeUnlessReplied(client, sendQuery(client, { text: 'select' }))
      return await sendQuery(client, statement).catch(error => {
        if (isStale(error)) retire(connection, client)
        throw error
      })
    } finally {
      connection.statementsInFlight -= 1
      connection.waitingSinceMs = performance.now()
    }
  }

  /** Waits for the replies to all statements, then closes the connections. */
  async end(): Promise<void> {
    this.#isEnded = true
    // A connection that could not be opened need not be closed.
    await Promise.allSettled(this.#connections.map(({ client, connected }) => connected.then(() => client?.end())))
  }

  /**
   * Returns the connection with the fewest statements in flight. Ignores connections that have waited 5 s for a reply.
   * While one connection works, a statement never waits until another connection has opened.
   */
  #choose(): Connection {
    const stuckBefore = performance.now() - STUCK_MS
    const usable = this.#connections.filter(
      ({ statementsInFlight, waitingSinceMs }) => statementsInFlight === 0 || waitingSinceMs > stuckBefore,
    )
    if (usable.length === 0) throw unreachableError('no connection has replied for 5 s', 'ETIMEDOUT')
    const ready = usable.filter(({ isReady }) => isReady)
    if (ready.length === 0) return findLeastBusy(usable)
    const chosen = findLeastBusy(ready)
    if (chosen.statementsInFlight > 0) this.#openAnother()
    return chosen
  }

  /** Opens a closed connection for later statements, at most one attempt a second for each connection. */
  #openAnother(): void {
    const latestAttempt = performance.now() - REOPEN_MS
    const closed = this.#connections.find(({ client, openedAtMs }) => !client && openedAtMs < latestAttempt)
    if (closed) this.#open(closed)
  }

  /**
   * Opens a client for a connection. If the client cannot connect or loses its connection, this method retires the
   * client. The next statement then opens another client.
   */
  #open(connection: Connection): Client {
    const client = new Client(this.#config)
    const onLost = () => retire(connection, client)
    client.on('error', onLost)
    client.on('end', onLost)
    connection.client = client
    connection.openedAtMs = performance.now()
    connection.connected = client.connect()
    connection.connected.then(() => {
      connection.isReady = connection.client === client
      this.emit('connect', client)
    }, onLost)
    return client
  }
}

/**
 * Stops using a client. The client closes its connection after it has received the replies to all statements that it
 * has sent.
 */
function retire(connection: Connection, client: Client): void {
  if (connection.client !== client) return
  connection.client = undefined
  connection.isReady = false
  void client.end()
}

function findLeastBusy(connections: Connection[]): Connection {
  return connections.reduce((least, other) => (other.statementsInFlight < least.statementsInFlight ? other : least))
}
