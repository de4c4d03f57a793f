import pg from 'pg'
import type { ConnectionConfig } from './client.ts'

/**
 * The planner options for statements that read a few rows by an index. PostgreSQL's default cost settings suit a
 * spinning disk. With these defaults, PostgreSQL would scan a whole table of some thousand games to find a few of them.
 * If the URL contains `options`, they replace these planner options.
 */
export const PLANNER_OPTIONS = '-c random_page_cost=1.1'

/**
 * The planner options for connections on which statements only read. The statement for streams should use an index,
 * because it finds only a few new rows for each user. PostgreSQL estimates that it finds a third of all rows of these
 * users. So without these options, it would join by reading the whole index.
 */
export const READ_LOOKUPS = [PLANNER_OPTIONS, 'enable_hashjoin=off', 'enable_mergejoin=off'].join(' -c ')

/**
 * The planner options for connections on which every statement looks up rows by key. With these options, PostgreSQL
 * plans each statement only once, for all values, and uses indexes even while a table is small.
 *
 * By default, PostgreSQL plans some statements again at every execution, although the planning takes longer than the
 * execution. For other statements it keeps the plans that were best while the tables were empty.
 */
export const KEY_LOOKUPS = [
  PLANNER_OPTIONS,
  ...['plan_cache_mode=force_generic_plan', 'enable_seqscan=off', 'enable_hashjoin=off', 'enable_mergejoin=off'],
  // PostgreSQL gives disabled plan nodes a huge cost. If a plan needs such a node, PostgreSQL considers the plan
  // expensive and would compile it with JIT, although the statement reads only a few rows.
  'jit=off',
].join(' -c ')

export type ConnectionOptions = {
  /** The `application_name` that PostgreSQL shows. */
  name?: string
  /** The planner options: PLANNER_OPTIONS, READ_LOOKUPS or KEY_LOOKUPS. */
  planner?: string
  /**
   * How many milliseconds the client waits for a reply before it closes the connection. This time must be longer than
   * the server's `statement_timeout`, so that a slow statement fails without closing its connection.
   */
  maxSilenceMs?: number
  /** See `CHECK_AFTER_IDLE_MS` in pipeline.ts. Tests use a shorter time. */
  checkAfterIdleMs?: number
  /** How many milliseconds a statement waits for a lock before it fails. By default, only `TIMEOUTS` end its wait. */
  lockTimeoutMs?: number
}

/**
 * Returns the settings of a connection on which the service runs statements.
 * @param url a PostgreSQL URL. If the URL names several hosts, the client tries them in order
 */
export function connectionConfig(
  url: string,
  {
    name = 'courtside',
    planner = PLANNER_OPTIONS,
    maxSilenceMs = 35_000,
    checkAfterIdleMs,
    lockTimeoutMs,
  }: ConnectionOptions,
): ConnectionConfig {
  return {
    connectionString: url,
    application_name: name,
    types: types as pg.CustomTypesConfig,
    connectionTimeoutMillis: 5_000,
    sessionSettings: [
      TIMEOUTS,
      ...(lockTimeoutMs === undefined ? [] : [`set lock_timeout = ${lockTimeoutMs}`]),
      ...(hasOptions(url) ? [] : [toStatements(planner)]),
    ].join('; '),
    maxSilenceMs,
    ...(checkAfterIdleMs !== undefined && { checkAfterIdleMs }),
    keepAlive: true,
    // A firewall forgets connections that carry no packets. Without this option, the first packet would follow only
    // after two hours. If a packet gets no reply, the operating system closes the connection 10 s later.
    keepAliveInitialDelayMillis: 30_000,
    // Sends each statement without waiting for the replies to earlier statements.
    pipeline: true,
  }
}

// After 30 s the HTTP client has given up. Without this timeout, the statement would continue to run and keep its
// locks.
const TIMEOUTS = "set statement_timeout = '30s'; set idle_in_transaction_session_timeout = '60s'"

// With a generic plan, Citus does not know which shard has the rows of a statement.
const CITUS_PLANS = `select set_config('plan_cache_mode', 'auto', false)
  where to_regclass('pg_catalog.pg_dist_partition') is not null`

function hasOptions(url: string): boolean {
  return new URLSearchParams(url.split('?')[1]).has('options')
}

/** Returns statements that set planner options. A pooler refuses or ignores the startup parameter `options`. */
function toStatements(planner: string): string {
  const options = planner.split('-c ').slice(1)
  return [...options.map(option => `set ${option.trim()}`), CITUS_PLANS].join('; ')
}

const INT8_ARRAY = 1016

// The parser turns an int8 into a number. If a number cannot hold the value exactly, the parser throws instead of
// rounding.
const types = {
  getTypeParser(oid: number, format?: string): (value: string) => unknown {
    if (oid === pg.types.builtins.INT8 && format !== 'binary') return safeInteger
    if (oid === INT8_ARRAY && format !== 'binary') return integerArray
    return pg.types.getTypeParser(oid, format as 'text')
  },
}

function safeInteger(text: string): number {
  const value = Number(text)
  if (!Number.isSafeInteger(value)) throw new RangeError('the database returned an int8 beyond 2^53-1')
  return value
}

function integerArray(text: string): number[] {
  return text === '{}' ? [] : text.slice(1, -1).split(',').map(safeInteger)
}
