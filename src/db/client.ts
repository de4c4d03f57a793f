import type { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import pg from 'pg'
import { unreachableError } from './errors.ts'
import { type Host, parsePostgresUrl } from './postgres-url.ts'

const PROBE_TIMEOUT_MS = 2_000
/** How often the client checks for silence during `maxSilenceMs`. */
const CHECKS = 10
/** The maximum wait for the reply to a statement that needs no time and no lock. */
const CHECK_TIMEOUT_MS = 5_000

/**
 * The session settings that our statements rely on. A role or a database can have other defaults. pg cannot parse other
 * styles of dates. With another isolation level, a statement would fail instead of reading a row that changed
 * meanwhile. The client sets them with a statement instead of the parameter `options`, because the URL may contain
 * other `options`, and a pooler may refuse or ignore `options`. The search path names only our schema, so the tables
 * and functions of other applications never take the place of ours.
 *
 * If our machine loses its power, its connections stay open on the server and count for `max_connections`. With the TCP
 * settings, the server closes them within four minutes. By default, Linux would wait for two hours, or for 16 minutes
 * if the server has sent data.
 */
const SESSION_SETTINGS = `set time zone 'UTC'; set datestyle = 'ISO, MDY'; set bytea_output = 'hex';
  set default_transaction_isolation = 'read committed';
  set tcp_keepalives_idle = 60; set tcp_keepalives_interval = 10; set tcp_user_timeout = 150000`

export type ConnectionConfig = pg.ClientConfig & {
  /** Statements that set more session settings. */
  sessionSettings?: string
  /**
   * How many milliseconds the client waits for a reply before it closes the connection. If the server's machine loses
   * power, the connection stays open, and TCP would report the loss only after a quarter of an hour.
   */
  maxSilenceMs?: number
  /** See `CHECK_AFTER_IDLE_MS` in pipeline.ts. Tests use a shorter time. */
  checkAfterIdleMs?: number
}

/**
 * Extends pg's client to URLs that name several hosts: `postgres://user:password@one:5432,two/db`. The client connects
 * to the first host that answers and is not in recovery. So after a failover, new connections find the new primary.
 * With one host, the client behaves like pg's client. The pools, the listener and the migrations all use this class.
 */
export class Client extends pg.Client {
  readonly #hosts: Host[]
  readonly #config: ConnectionConfig
  readonly #requiresScram: boolean
  readonly #schema: string

  constructor(config: ConnectionConfig) {
    const { hosts, firstHostUrl, requiresScram, schema } = parsePostgresUrl(config.connectionString!)
    super({ ...config, connectionString: firstHostUrl })
    // Without a listener, an error would end the process. A caller cannot add a listener in time: the packet that ends
    // the login may also contain the error of a server that is shutting down. The statements and the event `end` report
    // the loss.
    this.on('error', () => {})
    if (requiresScram) requireScram(this)
    this.#hosts = hosts
    this.#requiresScram = requiresScram
    this.#schema = schema
    this.#config = { ...config, connectionString: firstHostUrl }
  }

  override connect(): Promise<this>
  override connect(callback: (error: Error) => void): void
  override connect(callback?: (error: Error) => void): Promise<this> | undefined {
    const connected = this.#connect()
    if (!callback) return connected
    connected.then(() => callback(undefined as unknown as Error), callback)
    return undefined
  }

  async #connect(): Promise<this> {
    if (this.#hosts.length > 1) Object.assign(this, await this.#findPrimary())
    await super.connect()
    const { maxSilenceMs } = this.#config
    if (maxSilenceMs !== undefined) this.#destroyWhenSilent(maxSilenceMs)
    // PostgreSQL runs this statement before all later statements, so no caller has to wait for its reply. If it fails,
    // the later statements must fail too.
    const searchPath = `set search_path = ${pg.escapeIdentifier(this.#schema)}, pg_temp`
    sendQuery(this, { text: `${searchPath}; ${SESSION_SETTINGS}; ${this.#config.sessionSettings ?? ''}` }).catch(
      error => (this.connection.stream as Socket).destroy(error),
    )
    return this
  }

  /**
   * Destroys the socket if a reply is due and the server sends nothing for `ms` milliseconds. If the URL names several
   * hosts, the client looks for a new primary after a fifth of this time. The option `query_timeout` of pg would have
   * the same effect, but it needs a timer for each statement (see `sendQuery`). The socket's own timeout does not help,
   * because each statement that we send restarts that timeout.
   */
  #destroyWhenSilent(ms: number): void {
    const socket = this.connection.stream as Socket
    let bytesBefore = 0
    let silentChecks = 0
    const timer = setInterval(() => {
      const { readyForQuery } = this as unknown as { readyForQuery: boolean }
      silentChecks = readyForQuery || socket.bytesRead !== bytesBefore ? 0 : silentChecks + 1
      bytesBefore = socket.bytesRead
      if (silentChecks > CHECKS) socket.destroy(unreachableError('the server has stopped replying', 'ETIMEDOUT'))
      else if (silentChecks >= CHECKS / 5 && this.#hosts.length > 1) void this.#destroyIfPrimaryMoved()
    }, ms / CHECKS).unref()
    this.once('end', () => clearInterval(timer))
  }

  /** The statement may only be slow, so the socket stays open unless another host is the primary. */
  async #destroyIfPrimaryMoved(): Promise<void> {
    const primary = await this.#findPrimary().catch(() => undefined)
    if (!primary || (primary.host === this.host && primary.port === this.port)) return
    const error = unreachableError('another host is the primary now', 'EHOSTUNREACH')
    ;(this.connection.stream as Socket).destroy(error)
  }

  async #findPrimary(): Promise<Host> {
    let lastError: unknown
    for (const host of this.#hosts) {
      const probe = new pg.Client({
        ...this.#config,
        connectionTimeoutMillis: PROBE_TIMEOUT_MS,
        query_timeout: PROBE_TIMEOUT_MS,
      })
      probe.on('error', () => {})
      if (this.#requiresScram) requireScram(probe)
      Object.assign(probe, host)
      try {
        await probe.connect()
        const { rows } = await probe.query('select pg_is_in_recovery() as standby')
        if (!rows[0].standby) return host
      } catch (error) {
        lastError = error
      } finally {
        await probe.end().catch(() => {})
      }
    }
    throw lastError ?? unreachableError('every host is a standby', 'EHOSTUNREACH')
  }
}

/**
 * Closes the connection if the reply to a statement that needs no time and no lock does not arrive within 5 s.
 */
export async function closeUnlessReplied(client: pg.ClientBase, reply: Promise<unknown>): Promise<void> {
  const { connection } = client as Client
  const timer = setTimeout(() => {
    ;(connection.stream as Socket).destroy(unreachableError('the server has stopped replying', 'ETIMEDOUT'))
  }, CHECK_TIMEOUT_MS)
  await reply.catch(() => {}).finally(() => clearTimeout(timer))
}

/**
 * Closes the connection if the server asks for the password in another way than SCRAM, or asks for no password. With
 * SCRAM, the client never sends the password, and it checks that the server knows the password too. So a program that
 * took the place of the server gets neither the password nor a statement.
 * @param client a client that has not connected yet. The listeners of `requireScram` run before those of pg
 */
function requireScram(client: pg.Client): void {
  const { connection } = client as unknown as { connection: EventEmitter & { stream: Socket } }
  let isProven = false
  const refuse = () => {
    // The same packet may contain the message that ends the login. pg must not see it.
    connection.removeAllListeners('readyForQuery')
    connection.stream.destroy(unreachableError('the server does not use SCRAM', 'ECONNABORTED'))
  }
  connection.on('authenticationCleartextPassword', refuse)
  connection.on('authenticationMD5Password', refuse)
  connection.on('authenticationSASLFinal', () => {
    isProven = true
  })
  connection.on('authenticationOk', () => isProven || refuse())
}

/**
 * Runs a statement with pg's callback interface. With pg's promises or pg's `query_timeout`, each statement and its
 * rows stay in memory for so long that V8 moves them to its old generation. A garbage collection under load then takes
 * about 20 ms. With callbacks, a garbage collection takes half a millisecond (measured with `--trace-gc`).
 */
export async function sendQuery(client: pg.ClientBase, statement: pg.QueryConfig): Promise<pg.QueryResult> {
  try {
    return await new Promise((resolve, reject) => {
      client.query(statement, (error, result) => (error ? reject(error) : resolve(result)))
    })
  } catch (error) {
    // Points the stack trace at the caller instead of the socket.
    if (error instanceof Error) Error.captureStackTrace(error)
    throw error
  }
}

/**
 * Collects the statements that are sent until `schedule` runs its callback, and writes them to the socket together.
 * @param schedule `setImmediate` or `process.nextTick`
 */
export function cork(client: pg.ClientBase, schedule: (uncork: () => void) => unknown): void {
  const { stream } = (client as unknown as { connection: { stream: Socket } }).connection
  if (stream.writableCorked > 0) return
  stream.cork()
  schedule(() => stream.uncork())
}
