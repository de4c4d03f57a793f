import pg from 'pg'
import type { ConnectionConfig } from './client.ts'

/**
 * Every statement reads a few rows by an index. PostgreSQL's default costs are those of a spinning disk; with them it
 * would scan a whole table of some thousand games. If the URL brings its own `options`, those replace ours.
 */
export const PLANNER_OPTIONS = '-c random_page_cost=1.1'

/**
 * For connections on which every statement looks rows up by key. PostgreSQL plans each statement once, for any values,
 * and uses indexes even while a table is small. By default it would plan some statements again on every execution,
 * which takes longer than running them, and would keep plans for others that were best while the tables were empty.
 */
export const KEY_LOOKUPS = [
  PLANNER_OPTIONS,
  ...['plan_cache_mode=force_generic_plan', 'enable_seqscan=off', 'enable_hashjoin=off', 'enable_mergejoin=off'],
  // Disabled plan nodes get a huge cost, which would trigger JIT compilation where a plan cannot avoid them.
  'jit=off',
].join(' -c ')

export type ConnectionOptions = {
  /** The `application_name` that PostgreSQL shows. */
  name?: string
  /** How PostgreSQL plans: PLANNER_OPTIONS or KEY_LOOKUPS. */
  planner?: string
  /** How long to wait for a reply. Longer than `statement_timeout`, which the server enforces. */
  maxSilenceMs?: number
}

/**
 * Returns the settings of a connection for statements.
 * @param url a PostgreSQL URL; several hosts are tried in order
 */
export function connectionConfig(
  url: string,
  { name = 'courtside', planner = PLANNER_OPTIONS, maxSilenceMs = 35_000 }: ConnectionOptions,
): ConnectionConfig {
  return {
    connectionString: url,
    application_name: name,
    types: types as pg.CustomTypesConfig,
    connectionTimeoutMillis: 5_000,
    options: planner,
    timeZone: 'UTC',
    // The client of a statement that runs this long has given up. The statement must not keep its locks.
    statement_timeout: 30_000,
    idle_in_transaction_session_timeout: 60_000,
    maxSilenceMs,
    keepAlive: true,
    // Sends a statement without waiting for the replies to those before it.
    pipeline: true,
  }
}

const INT8_ARRAY = 1016

// An int8 becomes a number. A value that a number cannot hold exactly throws instead of being rounded.
const types = {
  getTypeParser(oid: number, format?: string): (value: string) => unknown {
    if (oid === pg.types.builtins.INT8 && format !== 'binary') return safeInteger
    if (oid === INT8_ARRAY && format !== 'binary') return integerArray
    return pg.types.getTypeParser(oid, format as 'text')
  },
}

function safeInteger(text: string): number {
  const value = Number(text)
  if (!Number.isSafeInteger(value)) throw new RangeError('an int8 beyond 2^53-1 came out of the database')
  return value
}

function integerArray(text: string): number[] {
  return text === '{}' ? [] : text.slice(1, -1).split(',').map(safeInteger)
}
