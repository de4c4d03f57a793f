import type pg from 'pg'
import { Client } from '../db/client.ts'

/** The triggers and functions of the table that Citus refuses. Only versions before migration 0007 need them. */
const DROP_TRIGGER = 'drop trigger notification_fact on notification'
const DROP_FUNCTION = 'drop function if exists notification_fact_to_dedup_key()'
const DROP_FOREIGN_KEY = 'alter table notification drop constraint notification_user_fkey'
const DISTRIBUTE = `select create_distributed_table('notification', 'user_id')`
const TRUNCATE = `select truncate_local_data_after_distributing_table('notification')`

const NO_EXTENSION =
  'the extension citus is missing. Run "create extension citus" in this database, on the coordinator and on each worker'

const LOCK_TIMEOUT_MS = 5_000

/** The reasons why the command cannot run, and the statements that the database still needs. */
export type Inspection = { faults: string[]; statements: string[] }

type State = {
  has_foreign_key: boolean
  has_trigger: boolean
  /** Null if the table is not distributed. */
  column: string | null
  others: string[]
  workers: number
  connections: number
  has_local_rows: boolean
}

/**
 * Returns what a database needs so that Citus stores the table `notification` on several machines, by user. Every other
 * table must stay a plain table of the coordinator.
 */
export async function inspect(client: pg.Client): Promise<Inspection> {
  const { rows: extensions } = await client.query(`select from pg_extension where extname = 'citus'`)
  if (extensions.length === 0) {
    return { faults: [NO_EXTENSION], statements: [] }
  }
  const { rows } = await client.query<State>(`
    select
      exists (select from pg_constraint where conrelid = 'notification'::regclass and contype = 'f') as has_foreign_key,
      exists (select from pg_trigger where tgrelid = 'notification'::regclass and tgname = 'notification_fact')
        as has_trigger,
      (select column_to_column_name(logicalrelid, partkey) from pg_dist_partition
        where logicalrelid = 'notification'::regclass) as column,
      array(select logicalrelid::text from pg_dist_partition where logicalrelid <> 'notification'::regclass) as others,
      (select count(*)::integer from pg_dist_node where isactive and shouldhaveshards and groupid > 0) as workers,
      (select count(*)::integer from pg_stat_activity
        where datname = current_database() and application_name like 'courtside%' and pid <> pg_backend_pid())
        as connections,
      pg_relation_size('notification') > 0 as has_local_rows`)
  const state = rows[0]!
  const statements = findStatements(state)
  return { faults: findFaults(state, statements.length > 0), statements }
}

function findStatements({ column, has_trigger, has_foreign_key, has_local_rows }: State): string[] {
  if (column !== null) return has_local_rows ? [TRUNCATE] : []
  return [
    ...(has_foreign_key ? [DROP_FOREIGN_KEY] : []),
    ...(has_trigger ? [DROP_TRIGGER, DROP_FUNCTION] : []),
    DISTRIBUTE,
    TRUNCATE,
  ]
}

function findFaults({ column, others, workers, connections }: State, isPending: boolean): string[] {
  return [
    ...(workers === 0 ? ['Citus has no worker. Add at least one with citus_add_node'] : []),
    ...(column !== null && column !== 'user_id' ? [`notification is distributed by ${column} instead of user_id`] : []),
    ...others.map(table => `Citus manages the table ${table}. Give it back with undistribute_table`),
    ...(isPending && connections > 0
      ? [`the service has ${connections} open connections. Stop all its processes`]
      : []),
  ]
}

/**
 * Runs statements of `inspect`. All of them, except the last one, run in one transaction. So an interruption leaves
 * either the plain table or the distributed one, and the next call does the rest.
 * @throws if another transaction uses the table
 */
export async function distribute(client: pg.Client, statements: readonly string[]): Promise<void> {
  const inTransaction = statements.filter(statement => statement !== TRUNCATE)
  await client.query(`set lock_timeout = ${LOCK_TIMEOUT_MS}`)
  if (inTransaction.length > 0) {
    await client.query('begin')
    for (const statement of inTransaction) await client.query(statement)
    await client.query('commit')
  }
  // The rows that were copied are invisible in the table of the coordinator, but still on its disk.
  if (statements.includes(TRUNCATE)) await client.query(TRUNCATE)
}

/** Connects for `inspect` and `distribute`. The copy of a large table takes longer than a role's default time-out. */
export async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: url, application_name: 'courtside-distribute' })
  await client.connect()
  try {
    await client.query('set statement_timeout = 0')
    return await work(client)
  } finally {
    await client.end()
  }
}
