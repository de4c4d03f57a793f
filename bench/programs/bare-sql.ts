import pg from 'pg'
import type { Sql } from '../../src/db/sql.ts'
import { prepareStatement } from '../../src/db/statement.ts'

/** Runs statements: a pool, or one of its connections inside a transaction. */
type Target = pg.Pool | pg.PoolClient

/**
 * Runs the service's statements directly on `pg`: the same texts as named prepared statements, and plain transactions.
 * The service's `sql` does more (it classifies errors, has savepoints and fails over). The bench measures the cost of
 * that.
 */
export function createBareSql(databaseUrl: string, max: number, options: string): Sql {
  pg.types.setTypeParser(pg.types.builtins.INT8, Number)
  const pool = new pg.Pool({ connectionString: databaseUrl, options, max, idleTimeoutMillis: 0 })
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
