import pg from 'pg'
import type { Sql } from '../../src/db/sql.ts'
import { prepareStatement } from '../../src/db/statement.ts'

/** A pool for single statements, or one connection of a pool for a transaction. */
type Target = pg.Pool | pg.PoolClient

/**
 * Creates an `sql` that runs the statements of the service directly on `pg`, as named prepared statements and in plain
 * transactions. The `sql` of the service also classifies errors, sets savepoints and handles failovers. The ceiling,
 * the minimal server in `ceiling.ts`, uses this function. So the comparison of the service with the ceiling also shows
 * the cost of these three features.
 */
export function createBareSql(databaseUrl: string, max: number, options: string): Sql {
  pg.types.setTypeParser(pg.types.builtins.INT8, Number)
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    options: `${options} -c search_path=courtside`,
    max,
    idleTimeoutMillis: 0,
  })
  const sql = runOn(pool)
  sql.begin = async work => {
    const client = await pool.connect()
    try {
      await client.query('begin')
      const result = await work(runOn(client))
      await client.query('commit')
      return result
    } catch (error) {
      await client.query('rollback')
      throw error
    } finally {
      client.release()
    }
  }
  return sql
}

function runOn(target: Target): Sql {
  return (async (strings: TemplateStringsArray, ...values: unknown[]) => {
    return (await target.query(prepareStatement(strings, values))).rows
  }) as unknown as Sql
}
