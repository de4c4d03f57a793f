import pg from 'pg'
import { AppError } from '../errors.ts'
import { closeUnlessReplied, cork, sendQuery } from './client.ts'
import { rethrowAsUnavailable } from './errors.ts'

export type Queryable = { query(statement: pg.QueryConfig): Promise<pg.QueryResult> }

/** The result of the work of a transaction. The work did not wait for the replies to some of its last statements. */
export type Work<T> = { result: T; replies: Promise<unknown> }

/**
 * Runs `work` in a transaction on a connection of the pool. The connection sends `begin` together with the first
 * statement of `work`, and `commit` together with the last statements, so neither of them needs a round trip.
 */
export async function runTransaction<T>(pool: pg.Pool, work: (connection: Queryable) => Promise<Work<T>>): Promise<T> {
  const client = await pool.connect().catch(rethrowAsUnavailable)
  let hasBegun = false
  const query = (statement: pg.QueryConfig) => {
    cork(client, process.nextTick)
    if (hasBegun) return sendQuery(client, statement)
    hasBegun = true
    return begin(client, statement)
  }
  let connectionError: Error | undefined
  try {
    const { result, replies } = await work({ query })
    // If one of the last statements fails, PostgreSQL runs this `commit` as a rollback.
    if (hasBegun) await Promise.all([replies, query({ text: 'commit' })]).catch(rethrowAsUnavailable)
    return result
  } catch (error) {
    // The error `unavailable` may mean that the connection is lost, or that its server is no longer the primary. So the
    // pool closes the connection. The transaction ends with the connection.
    if (error instanceof AppError && error.code === 'unavailable') connectionError = error
    else if (hasBegun) {
      await query({ text: 'rollback' }).catch((rollbackError: Error) => {
        connectionError = rollbackError
      })
    }
    throw error
  } finally {
    client.release(connectionError)
  }
}

/** Sends `begin` and the first statement of a transaction. */
function begin(client: pg.ClientBase, statement: pg.QueryConfig): Promise<pg.QueryResult> {
  const begun = Promise.withResolvers<void>()
  const first = new Promise<pg.QueryResult>((resolve, reject) => {
    client.query(new FirstQuery(statement, begun.resolve, (error, result) => (error ? reject(error) : resolve(result))))
  })
  first.catch(begun.reject)
  // A firewall or a proxy may have forgotten the connection while it was idle.
  void closeUnlessReplied(client, begun.promise)
  return first
}

type Callback = (error: Error | null, result: pg.QueryResult) => void

type Submittable = {
  name: string | undefined
  text: string
  submit(connection: pg.Connection): Error | null
  hasBeenParsed(connection: pg.Connection): unknown
  handleCommandComplete(message: unknown, connection: pg.Connection): void
}

/** The SQL text of the prepared statements of a connection, by name. */
type StatementNames = Record<'parsedStatements' | 'submittedNamedStatements', Record<string, string>>

const Query = pg.Query as unknown as new (
  statement: pg.QueryConfig & { queryMode: 'extended' },
  callback: Callback,
) => Submittable

/**
 * The first statement of a transaction. `begin` and the statement share one sync message. So if `begin` fails,
 * PostgreSQL skips the statement, and the statement never runs outside a transaction. Further statements that are sent
 * in the same turn would then run without a transaction. If they waited for the reply to `begin`, each transaction of
 * the intake would need one more round trip. We have never seen `begin` fail on a connection that stays open. We
 * expect it only if `pg_cancel_backend` hits `begin` itself, or if the network stops for 30 s between two packets of
 * one write, so that `statement_timeout` ends `begin`.
 */
class FirstQuery extends Query {
  readonly #onBegun: () => void
  #isNew = false
  #hasBegun = false

  constructor(statement: pg.QueryConfig, onBegun: () => void, callback: Callback) {
    super({ ...statement, queryMode: 'extended' }, callback)
    this.#onBegun = onBegun
  }

  override submit(connection: pg.Connection): Error | null {
    this.#isNew = !this.hasBeenParsed(connection)
    const { parse, bind, execute, flush } = connection as unknown as Record<string, (message?: object) => void>
    parse!.call(connection, { text: 'begin' })
    bind!.call(connection, {})
    execute!.call(connection, {})
    // Without this message, the reply to `begin` would wait for the reply to the statement.
    flush!.call(connection)
    return super.submit(connection)
  }

  override handleCommandComplete(message: unknown, connection: pg.Connection): void {
    if (this.#hasBegun) {
      super.handleCommandComplete(message, connection)
      return
    }
    this.#hasBegun = true
    if (this.#isNew) this.#markAsSubmitted(connection as unknown as StatementNames)
    this.#onBegun()
  }

  /** pg has marked the statement as parsed, but the server has parsed only `begin`. */
  #markAsSubmitted({ parsedStatements, submittedNamedStatements }: StatementNames): void {
    const { name, text } = this
    if (name === undefined) return
    delete parsedStatements[name]
    submittedNamedStatements[name] = text
  }
}
