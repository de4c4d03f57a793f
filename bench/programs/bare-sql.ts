import pg from 'pg'
import type { Sql } from '../../src/db/sql.ts'

/** What runs a statement: a pool, or one connection of it inside a transaction. */
type Target = pg.Pool | pg.PoolClient

/**
 * The service's statements, run with nothing between them and `pg`: the same texts, sent as named prepared statements, and
 * the same plain transactions. What the service's own `sql` does besides (faults told apart, savepoints, fail-over) is part of
 * what is measured against this.
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
    const { name, text } = prepare(strings)
    return (await target.query({ name, text, values })).rows
  }) as unknown as Sql
}

const statements = new Map<TemplateStringsArray, { name: string; text: string }>()

function prepare(strings: TemplateStringsArray): { name: string; text: string } {
  let known = statements.get(strings)
  if (!known) {
    known = { name: `s${statements.size}`, text: strings.reduce((sql, part, index) => `${sql}$${index}${part}`) }
    statements.set(strings, known)
  }
  return known
}
