import type { Socket } from 'node:net'
import pg from 'pg'
import { unreachableError } from './errors.ts'

const PROBE_MS = 2_000

export type ConnectionConfig = pg.ClientConfig & {
  /**
   * How long a server may be silent that owes an answer. A machine that lost its power breaks no connection, and TCP alone would
   * wait for it for a quarter of an hour.
   */
  maxSilenceMs?: number
  /**
   * In what zone PostgreSQL writes instants. It is asked for by a statement, since `options` may be a URL's own, and a pooler may
   * leave them out.
   */
  timeZone?: 'UTC'
}

type Host = { host: string; port: number }

/**
 * pg's client, for a URL that may name several hosts, `postgres://user:password@one:5432,two/db`: it connects to the first that
 * is reached and is not in recovery, so that after a fail-over new connections find the new primary. With one host it is pg's
 * own. Pool, queue and migrations all use this one.
 */
export class Client extends pg.Client {
  readonly #hosts: Host[]
  readonly #config: ConnectionConfig

  constructor(config: ConnectionConfig) {
    const { hosts, url } = splitHosts(config.connectionString!)
    super({ ...config, connectionString: url })
    this.#hosts = hosts
    this.#config = { ...config, connectionString: url }
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
    if (this.#hosts.length > 1) Object.assign(this, await this.#primary())
    await super.connect()
    const { maxSilenceMs: patienceMs, timeZone } = this.#config
    if (patienceMs !== undefined) this.#leaveWhenSilent(patienceMs)
    // Ahead of all others, so that nobody waits for it. Where it fails, so will they.
    if (timeZone) sendQuery(this, { text: `set time zone '${timeZone}'` }).catch(() => {})
    return this
  }

  /**
   * Not by pg's `query_timeout`, a timer for each statement (see `ask`), nor by the socket's, which each statement that is sent
   * starts anew: what counts is that nothing comes.
   */
  #leaveWhenSilent(ms: number): void {
    const socket = this.connection.stream as Socket
    let [heard, silent] = [0, 0]
    const watch = setInterval(() => {
      const { readyForQuery } = this as unknown as { readyForQuery: boolean }
      silent = readyForQuery || socket.bytesRead !== heard ? 0 : silent + 1
      heard = socket.bytesRead
      if (silent > 10) socket.destroy(unreachableError('the server owes an answer and is silent', 'ETIMEDOUT'))
    }, ms / 10).unref()
    this.once('end', () => clearInterval(watch))
  }

  async #primary(): Promise<Host> {
    let fault: unknown
    for (const host of this.#hosts) {
      const probe = new pg.Client({ ...this.#config, connectionTimeoutMillis: PROBE_MS, query_timeout: PROBE_MS })
      probe.on('error', () => {})
      Object.assign(probe, host)
      try {
        await probe.connect()
        const { rows } = await probe.query('select pg_is_in_recovery() as standby')
        if (!rows[0].standby) return host
      } catch (error) {
        fault = error
      } finally {
        await probe.end().catch(() => {})
      }
    }
    throw fault ?? unreachableError('every host is a standby', 'EHOSTUNREACH')
  }
}

/**
 * A statement's result. It is asked for by a callback, since pg's own promises, and its `query_timeout`, keep each statement with
 * all its rows from V8's collections of young objects. Under load these took some 20 ms then, and half a millisecond without
 * (seen with `--trace-gc`).
 */
export async function sendQuery(client: pg.ClientBase, statement: pg.QueryConfig): Promise<pg.QueryResult> {
  try {
    return await new Promise((resolve, reject) => {
      client.query(statement, (error, result) => (error ? reject(error) : resolve(result)))
    })
  } catch (error) {
    // Who asked, rather than which bytes were read.
    if (error instanceof Error) Error.captureStackTrace(error)
    throw error
  }
}

/** The hosts of a URL, and the same URL with the first alone, which is what pg can read. */
export function splitHosts(url: string): { hosts: Host[]; url: string } {
  const [, before, list, after] = /^(\w+:\/\/(?:[^@/]*@)?)([^/?]*)(.*)$/s.exec(url)!
  const names = list!.split(',')
  const hosts = names.map(name => {
    const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:]*))(?::(\d+))?$/.exec(name)!
    return { host: (bracketed ?? plain)!, port: Number(port ?? 5432) }
  })
  return { hosts, url: `${before}${names[0]}${after}` }
}
