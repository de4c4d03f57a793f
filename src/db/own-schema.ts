import { createHash } from 'node:crypto'
import { Client } from './client.ts'
import { DEFAULT_SCHEMA, parsePostgresUrl } from './postgres-url.ts'
import { type Fragment, fragment } from './statement.ts'

// Other applications may use the same database. Our tables and functions are in a separate schema. The names of our
// channels and the keys of our advisory locks are derived from the schema, because channels and locks belong to the
// whole database.

/** The first versions created their tables in the schema `public`, and used the names of channels without a prefix. */
const EARLIER_SCHEMA = 'public'

/** If a schema has these tables, they are the tables of a Courtside installation. */
const OUR_TABLES = ['migration', 'missed_guess', 'sign_in_address']

/**
 * Finds the schema of the tables. This is the schema in the setting DATABASE_SCHEMA, with one exception. If the setting
 * has its default value, and this schema has no tables of ours, an installation of an earlier version keeps its tables.
 * These tables are in `public`, or in another schema of the search path that the database or the role sets.
 * @returns the URL with the schema added. The clients in this folder take their schema from their URL
 */
export async function findSchema(url: string, configured: string): Promise<{ url: string; schema: string }> {
  const client = new Client({ connectionString: url, application_name: 'courtside-schema', query_timeout: 30_000 })
  await client.connect()
  try {
    await client.query('reset search_path')
    const { rows } = await client.query<{ schema: string }>(
      `select nspname as schema from pg_class join pg_namespace on pg_namespace.oid = relnamespace
      where relname = any($1::text[]) and relkind in ('r', 'p')
        and (nspname = $2::text or ($2 = $3::text and (nspname = $4::text or nspname = any(current_schemas(false)))))
      group by nspname having count(*) = cardinality($1)
      order by nspname <> $2, nspname <> $4 limit 1`,
      [OUR_TABLES, configured, DEFAULT_SCHEMA, EARLIER_SCHEMA],
    )
    const schema = rows[0]?.schema ?? configured
    return { url: `${url}${url.includes('?') ? '&' : '?'}schema=${encodeURIComponent(schema)}`, schema }
  } finally {
    await client.end()
  }
}

/** Returns the name under which PostgreSQL knows a NOTIFY channel of the installation that uses the schema. */
export function channelName(schema: string, channel: string): string {
  return schema === EARLIER_SCHEMA ? channel : `courtside.${schema}.${channel}`
}

/** Returns SQL that computes the same name as `channelName`, for sql`select pg_notify(${onChannel(…)}, …)`. */
export function onChannel(channel: string): Fragment {
  return fragment`concat(
    case when current_schema() <> 'public' then concat('courtside.', current_schema(), '.') end, ${channel}::text)`
}

/** Returns the key of the advisory lock under which an installation migrates its tables. */
export function migrationLockKey(url: string): bigint {
  const { schema } = parsePostgresUrl(url)
  return createHash('sha256').update(`courtside.${schema}.migrate`).digest().readBigInt64BE()
}
