import pg from 'pg'
import { AppError } from '../errors.ts'
import { Client, sendQuery } from './client.ts'
import { type ConnectionOptions, connectionConfig } from './connection-config.ts'
import { rethrowAsUnavailable } from './errors.ts'
import { Pipeline } from './pipeline.ts'
import { prepareStatement } from './statement.ts'

/**
 * Runs one statement and resolves to its rows: sql`select … ${value}`. It sends a named prepared statement and the
 * values as parameters. int8 comes back as a number, timestamptz as a Date, json parsed. Throws AppError `unavailable`
 * when the database cannot be reached or a second try may work, otherwise pg's DatabaseError.
 */
export type Query = <Row = Record<string, unknown>>(
  strings: TemplateStringsArray,
  ...values: unknown[]
) => Promise<Row[]>

export interface Sql extends Query {
  /**
   * Runs `work` in a transaction, or in a savepoint when it is called inside a transaction. A throw rolls back only
   * that transaction or savepoint. Statements that do not need each other's rows may be sent together (`Promise.all`):
   * PostgreSQL runs them in their order.
   */
  begin<T>(work: (sql: Sql) => Promise<T>): Promise<T>
}

/** Runs single statements, each in its own transaction. */
export interface Statements extends Query {
  /** For a library that has its own statements (the throttle). */
  pipeline: Pipeline
  close(): Promise<void>
}

export interface Database extends Sql, Statements {
  /** For transactions, and for the queue library, which has its own statements. */
  pool: pg.Pool
}

type Options = ConnectionOptions & {
  /** How many connections for single statements. */
  connections?: number
  /** How many connections for transactions. */
  max?: number
}

type Queryable = { query(statement: pg.QueryConfig): Promise<pg.QueryResult> }

/**
 * Connects for statements that only read, and therefore wait for no lock.
 * @param url a PostgreSQL URL; several hosts are tried in order
 * @param options.connections with two (the default), a slow statement holds up at most half of the others
 */
export function connectReads(url: string, options: Options = {}): Statements {
  return createStatements(
    new Pipeline(connectionConfig(url, { name: 'courtside-reads', ...options }), options.connections ?? 2),
  )
}

/**
 * Connects for all other statements and for transactions. A connection opens when it is first needed.
 * @param url a PostgreSQL URL; several hosts are tried in order
 * @param options.connections on two cores, five (the default) give a steadier p99 than ten
 */
export function connect(url: string, options: Options = {}): Database {
  const config = connectionConfig(url, options)
  const pool = new pg.Pool({
    ...config,
    Client: Client as unknown as typeof pg.Client,
    max: options.max ?? 5,
    // Fresh connections are slow and have no prepared statements, so the pool keeps idle ones.
    idleTimeoutMillis: 0,
  })
  // The next query replaces a lost connection. Without these listeners a lost connection would end the process.
  pool.on('error', () => {})
  pool.on('connect', client => client.on('error', () => {}))
  const single = createStatements(new Pipeline(config, options.connections ?? 5))
  return Object.assign(single, {
    begin: <T>(work: (sql: Sql) => Promise<T>) => runTransaction(pool, work),
    pool,
    close: async () => {
      await Promise.all([single.pipeline.end(), pool.end()])
    },
  })
}

function createStatements(pipeline: Pipeline): Statements {
  return Object.assign(createQuery(pipeline), { pipeline, close: () => pipeline.end() })
}

async function runTransaction<T>(pool: pg.Pool, work: (sql: Sql) => Promise<T>): Promise<T> {
  const client = await pool.connect().catch(rethrowAsUnavailable)
  const query = (statement: pg.QueryConfig) => sendQuery(client, statement)
  let connectionError: Error | undefined
  try {
    await query({ text: 'begin' }).catch(rethrowAsUnavailable)
    const result = await runWork({ query }, work)
    await query({ text: 'commit' }).catch(rethrowAsUnavailable)
    return result
  } catch (error) {
    // The server is silent, or read-only and no longer the primary. Its connection is useless; closing it ends the
    // transaction.
    if (error instanceof AppError && error.code === 'unavailable') connectionError = error
    else {
      await query({ text: 'rollback' }).catch((rollbackError: Error) => {
        connectionError = rollbackError
      })
    }
    throw error
  } finally {
    client.release(connectionError)
  }
}

/**
 * Runs the work of a transaction or savepoint. When one of several concurrent statements fails, the rest of the work
 * may still be running. A statement that it sends after the rollback throws, because it would run outside a transaction
 * or in another one.
 */
async function runWork<T>(connection: Queryable, work: (sql: Sql) => Promise<T>, depth = 1): Promise<T> {
  let isOver = false
  const query = async (statement: pg.QueryConfig) => {
    if (isOver) throw new Error('The transaction is over.')
    return connection.query(statement)
  }
  const sql = createQuery({ query }) as Sql
  sql.begin = async inner => {
    const savepoint = `s${depth}`
    await query({ text: `savepoint ${savepoint}` })
    try {
      const result = await runWork({ query }, inner, depth + 1)
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
    isOver = true
  }
}

/** Returns a tagged template that runs its statements on `target`. */
function createQuery(target: Queryable): Query {
  return (async (strings: TemplateStringsArray, ...values: unknown[]) => {
    const result = await target.query(prepareStatement(strings, values)).catch(rethrowAsUnavailable)
    return result.rows
  }) as Query
}
