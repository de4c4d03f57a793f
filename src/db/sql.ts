import pg from 'pg'
import { Client } from './client.ts'
import { type ConnectionOptions, connectionConfig, READ_LOOKUPS } from './connection-config.ts'
import { isInFailedTransaction, rethrowAsUnavailable } from './errors.ts'
import { Pipeline } from './pipeline.ts'
import { prepareStatement } from './statement.ts'
import { type Queryable, runTransaction, type Work } from './transaction.ts'

/**
 * Runs one statement and resolves to its rows: sql`select … ${value}`. Sends a named prepared statement and its
 * parameters. In the rows, an int8 is a number, a timestamptz is a Date, and JSON is parsed.
 * @throws AppError `unavailable` if the database cannot be reached or a second try may succeed
 * @throws DatabaseError of pg for all other errors
 */
export type Query = <Row = Record<string, unknown>>(
  strings: TemplateStringsArray,
  ...values: unknown[]
) => Promise<Row[]>

export interface Sql extends Query {
  /**
   * Runs `work` in a transaction. If `begin` is called inside a transaction, it runs `work` in a savepoint. If `work`
   * throws, only this transaction or savepoint is rolled back. Independent statements may be sent together with
   * `Promise.all`. PostgreSQL runs them in the order in which they were sent. `work` need not wait for its last
   * statements: `begin` waits for them, and throws their errors.
   */
  begin<T>(work: (sql: Sql) => Promise<T>): Promise<T>
}

/** Runs single statements, each in its own transaction. */
export interface Statements extends Query {
  /** The connections. */
  pipeline: Pipeline
  close(): Promise<void>
}

export interface Database extends Sql, Statements {
  /** Transactions use this pool. */
  pool: pg.Pool
}

type Options = ConnectionOptions & {
  /** The number of connections for single statements. */
  connections?: number
  /** The maximum number of connections for transactions. */
  max?: number
}

/**
 * Creates connections for statements that only read and therefore never wait for a lock.
 * @param url a PostgreSQL URL. If the URL names several hosts, the client tries them in order
 * @param options.connections the number of connections. The default is 2, so a slow statement delays at most half of
 * the other statements
 */
export function connectReads(url: string, options: Options = {}): Statements {
  return createStatements(
    new Pipeline(
      connectionConfig(url, { name: 'courtside-reads', planner: READ_LOOKUPS, ...options }),
      options.connections ?? 2,
    ),
  )
}

/**
 * Creates connections for transactions, and for statements that write or may wait for a lock. A connection opens when
 * it is first needed.
 * @param url a PostgreSQL URL. If the URL names several hosts, the client tries them in order
 * @param options.connections the number of connections for single statements. The default is 5. On two cores, 5
 * connections give a steadier p99 latency than 10
 */
export function connect(url: string, options: Options = {}): Database {
  const config = connectionConfig(url, options)
  const pool = new pg.Pool({
    ...config,
    Client: Client as unknown as typeof pg.Client,
    max: options.max ?? 5,
    // The pool keeps idle connections. A new connection takes time to open and has no prepared statements.
    idleTimeoutMillis: 0,
  })
  // Without this listener, a lost connection would end the process. The listener can ignore the error, because the pool
  // replaces a lost connection at the next query.
  pool.on('error', () => {})
  const statements = createStatements(new Pipeline(config, options.connections ?? 5))
  return Object.assign(statements, {
    begin: <T>(work: (sql: Sql) => Promise<T>) => runTransaction(pool, connection => runWork(connection, work)),
    pool,
    close: async () => {
      await Promise.all([statements.pipeline.end(), pool.end()])
    },
  })
}

function createStatements(pipeline: Pipeline): Statements {
  return Object.assign(createQuery(pipeline), { pipeline, close: () => pipeline.end() })
}

/**
 * Runs the work of a transaction or savepoint. If one of several concurrent statements fails, other parts of the work
 * may still be running after the rollback. If these parts then send a statement, `query` throws. Otherwise the
 * statement would run outside the transaction or in another transaction.
 */
async function runWork<T>(connection: Queryable, work: (sql: Sql) => Promise<T>, depth = 1): Promise<Work<T>> {
  let isOver = false
  const query = async (statement: pg.QueryConfig) => {
    if (isOver) throw new Error('The transaction is over.')
    return connection.query(statement)
  }
  const run = createQuery({ query })
  const unfinished = new Set<Promise<unknown>>()
  let firstFailure: unknown
  const sql = ((strings: TemplateStringsArray, ...values: unknown[]) => {
    const rows = run(strings, ...values)
    unfinished.add(rows)
    rows.then(
      () => unfinished.delete(rows),
      error => {
        firstFailure ??= error
      },
    )
    return rows
  }) as Sql
  sql.begin = inner => runSavepoint({ query }, inner, depth)
  try {
    const result = await work(sql)
    return { result, replies: Promise.all(unfinished) }
  } catch (error) {
    // After a statement has failed, PostgreSQL refuses the following ones. `work` may have waited only for them.
    throw isInFailedTransaction(error) ? (firstFailure ?? error) : error
  } finally {
    isOver = true
  }
}

async function runSavepoint<T>({ query }: Queryable, work: (sql: Sql) => Promise<T>, depth: number): Promise<T> {
  const savepoint = `s${depth}`
  await query({ text: `savepoint ${savepoint}` })
  try {
    const { result, replies } = await runWork({ query }, work, depth + 1)
    await replies
    await query({ text: `release savepoint ${savepoint}` })
    return result
  } catch (error) {
    await query({ text: `rollback to savepoint ${savepoint}` })
    throw error
  }
}

/** Returns a template tag that runs statements on `target`. */
function createQuery(target: Queryable): Query {
  return (async (strings: TemplateStringsArray, ...values: unknown[]) => {
    const result = await target.query(prepareStatement(strings, values)).catch(rethrowAsUnavailable)
    return result.rows
  }) as Query
}
