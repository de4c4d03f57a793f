import pg from 'pg'
import type { ConnectionConfig } from './client.ts'

/**
 * Every statement here asks for a few rows by an index. Reckoned as for a spinning disk, which is PostgreSQL's habit, it would
 * rather read all of a table of some thousand games. A URL with `options` of its own takes their place.
 */
export const PLANNER_OPTIONS = '-c random_page_cost=1.1'

/**
 * For connections whose every statement goes by keys: planned once, for any values, and by the indexes, however small a table is
 * just now. Left to itself PostgreSQL would plan some anew each time, which takes longer than to run them, and keep for others
 * what was best while the tables were empty.
 */
export const KEY_LOOKUPS = [
  PLANNER_OPTIONS,
  ...['plan_cache_mode=force_generic_plan', 'enable_seqscan=off', 'enable_hashjoin=off', 'enable_mergejoin=off'],
  // What is switched off counts as so dear, where there is no other way, that it would be compiled.
  'jit=off',
].join(' -c ')

export type ConnectionOptions = {
  /** As PostgreSQL lists it (`application_name`). */
  name?: string
  /** How PostgreSQL is to plan: PLANNER_OPTIONS or BY_KEYS. */
  planner?: string
  /** Milliseconds that an answer is waited for; more than the server gives a statement. */
  patienceMs?: number
}

/** How each connection for statements is set up. @param url a PostgreSQL URL; several hosts are tried in order */
export function connectionConfig(
  url: string,
  { name = 'courtside', planner = PLANNER_OPTIONS, patienceMs = 35_000 }: ConnectionOptions,
): ConnectionConfig {
  return {
    connectionString: url,
    application_name: name,
    types: types as pg.CustomTypesConfig,
    connectionTimeoutMillis: 5_000,
    options: planner,
    timeZone: 'UTC',
    // A statement that runs this long has lost its reader; it must not hold its locks.
    statement_timeout: 30_000,
    idle_in_transaction_session_timeout: 60_000,
    maxSilenceMs: patienceMs,
    keepAlive: true,
    // What is asked at once is sent at once.
    pipeline: true,
  }
}

const INT8_ARRAY = 1016

// An int8 is a number here, and one that a number can't hold is refused rather than rounded.
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
