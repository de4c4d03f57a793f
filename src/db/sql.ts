import { createHash } from 'node:crypto'
import pg from 'pg'
import { AppError } from '../errors.ts'
import { Client, sendQuery } from './client.ts'
import { type ConnectionOptions, connectionConfig } from './connection.ts'
import { rethrowAsUnavailable } from './errors.ts'
import { Pipeline } from './pipeline.ts'

/**
 * Runs one statement and resolves to its rows: sql`select … ${value}`. It is sent as a named prepared statement, the
 * values as parameters. int8 comes back as a number, timestamptz as a Date, json parsed.
 * Throws AppError `unavailable` when the database cannot be reached or a second try may do, else pg's DatabaseError.
 */
export type Query = <Row = Record<string, unknown>>(
  strings: TemplateStringsArray,
  ...values: unknown[]
) => Promise<Row[]>

export interface Sql extends Query {
  /**
   * Runs `work` in a transaction; inside one already, in a savepoint. A throw rolls back just that. Statements that don't need
   * each other's rows may be sent at once (`Promise.all`): PostgreSQL runs them in their order.
   */
  begin<T>(work: (sql: Sql) => Promise<T>): Promise<T>
}

/** What runs single statements, each a transaction of its own. */
export interface Statements extends Query {
  /** For a library that brings its own (the rate limit). */
  pipeline: Pipeline
  close(): Promise<void>
}

export interface Database extends Sql, Statements {
  /** For transactions; and for the queue's library, which brings its own statements. */
  pool: pg.Pool
}

type Options = ConnectionOptions & {
  /** Connections for single statements. */
  connections?: number
  /** Connections for transactions. */
  max?: number
}

type Queryable = { query(statement: pg.QueryConfig): Promise<pg.QueryResult> }

/**
 * For statements that only read, and so wait for no lock.
 * @param url a PostgreSQL URL; several hosts are tried in order
 * @param options.lines with two, a slow statement holds up half of the others at most
 */
export function connectReads(url: string, options: Options = {}): Statements {
  return pipelined(
    new Pipeline(connectionConfig(url, { name: 'courtside-reads', ...options }), options.connections ?? 2),
  )
}

/**
 * For everything else.
 * @param url a PostgreSQL URL; several hosts are tried in order
 * @param options.lines five give a steadier p99 than ten on two cores. Each connection is opened when it is needed first
 */
export function connect(url: string, options: Options = {}): Database {
  const config = connectionConfig(url, options)
  const pool = new pg.Pool({
    ...config,
    Client: Client as unknown as typeof pg.Client,
    max: options.max ?? 5,
    // Fresh connections are slow and come without prepared statements, so idle ones are kept.
    idleTimeoutMillis: 0,
  })
  // A lost connection is replaced at the next query; without listeners it would end the process, idle or in use.
  pool.on('error', () => {})
  pool.on('connect', client => client.on('error', () => {}))
  const single = pipelined(new Pipeline(config, options.connections ?? 5))
  return Object.assign(single, {
    begin: <T>(work: (sql: Sql) => Promise<T>) => transaction(pool, work),
    pool,
    close: async () => {
      await Promise.all([single.pipeline.end(), pool.end()])
    },
  })
}

function pipelined(pipeline: Pipeline): Statements {
  return Object.assign(queryOn(pipeline), { pipeline, close: () => pipeline.end() })
}

async function transaction<T>(pool: pg.Pool, work: (sql: Sql) => Promise<T>): Promise<T> {
  const client = await pool.connect().catch(rethrowAsUnavailable)
  const query = (statement: pg.QueryConfig) => sendQuery(client, statement)
  let broken: Error | undefined
  try {
    await query({ text: 'begin' }).catch(rethrowAsUnavailable)
    const result = await perform({ query }, work)
    await query({ text: 'commit' }).catch(rethrowAsUnavailable)
    return result
  } catch (error) {
    // A server that is silent, or read-only and so a primary no more: its connections are of no use, and end what they hold.
    if (error instanceof AppError && error.code === 'unavailable') broken = error
    else {
      await query({ text: 'rollback' }).catch((fault: Error) => {
        broken = fault
      })
    }
    throw error
  } finally {
    client.release(broken)
  }
}

/**
 * Does the work of a transaction or savepoint. Of statements that were sent together one may fail while the work goes on beside
 * it; what that sends once all is taken back is refused, for it would be in no transaction, or in somebody else's.
 */
async function perform<T>(connection: Queryable, work: (sql: Sql) => Promise<T>, depth = 1): Promise<T> {
  let over = false
  const query = async (statement: pg.QueryConfig) => {
    if (over) throw new Error('The transaction is over.')
    return connection.query(statement)
  }
  const sql = queryOn({ query }) as Sql
  sql.begin = async inner => {
    const savepoint = `s${depth}`
    await query({ text: `savepoint ${savepoint}` })
    try {
      const result = await perform({ query }, inner, depth + 1)
      await query({ text: `release savepoint ${savepoint}` })
      return result
    } catch (error) {
      await query({ text: `rollback to savepoint ${savepoint}` })
      throw error
    }
  }
  try {
    return await work(sql)
  } finally {
    over = true
  }
}

/** The tagged template that runs its statements on `target`. */
function queryOn(target: Queryable): Query {
  return (async (strings: TemplateStringsArray, ...values: unknown[]) => {
    const { name, text } = prepareStatement(strings)
    const result = await target.query({ name, text, values }).catch(rethrowAsUnavailable)
    return result.rows
  }) as Query
}

// A template's strings are one frozen object a call site, so each statement is named once in the life of the process.
const statements = new WeakMap<TemplateStringsArray, { name: string; text: string }>()

/** A template's statement: its text with `$1`, `$2` … for the values, and the name under which it is prepared. */
function prepareStatement(strings: TemplateStringsArray): { name: string; text: string } {
  let known = statements.get(strings)
  if (!known) {
    const text = strings.reduce((sql, part, index) => `${sql}$${index}${part}`)
    known = { name: createHash('sha256').update(text).digest('base64url').slice(0, 22), text }
    statements.set(strings, known)
  }
  return known
}
