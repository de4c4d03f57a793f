import type { Sql } from '../../src/db/sql.ts'

/**
 * Describes the database schema as text: tables with their columns, constraints and indexes, and whether a table is
 * unlogged. The function reads PostgreSQL's system catalog, and its result is the same on PostgreSQL 15 and 18. pg_dump
 * cannot replace this function, because the embedded PostgreSQL does not include pg_dump. The output of pg_dump also
 * differs between versions.
 */
export async function describeSchema(sql: Sql): Promise<string> {
  const columns = await sql<{ table: string; line: string }>`
    select relname as table, format('  %s %s%s%s%s', attname, format_type(atttypid, atttypmod),
      case when attcollation = '"C"'::regcollation then ' collate "C"' else '' end,
      case when attnotnull then ' not null' else '' end,
      case
        when attidentity = 'a' then ' generated always as identity'
        else coalesce(' default ' || pg_get_expr(adbin, adrelid), '')
      end) as line
    from pg_class join pg_attribute on attrelid = pg_class.oid and attnum > 0 and not attisdropped
      left join pg_attrdef on adrelid = attrelid and adnum = attnum
    where relnamespace = current_schema()::regnamespace and relkind = 'r'
    order by relname, attnum`
  // PostgreSQL 18 stores each "not null" as a constraint (contype "n"), but PostgreSQL 15 does not. The query leaves
  // these constraints out, because the line of the column already shows "not null".
  const constraints = await sql<{ table: string; line: string }>`
    select relname as table, format('  constraint %s %s', conname, pg_get_constraintdef(pg_constraint.oid)) as line
    from pg_constraint join pg_class on pg_class.oid = conrelid
    where relnamespace = current_schema()::regnamespace and contype <> 'n'
    order by relname, conname`
  const indexes = await sql<{ table: string; line: string }>`
    select tablename as table,
      format('  index %s %s', indexname, substr(indexdef, strpos(indexdef, ' USING ') + 1)) as line
    from pg_indexes
    where schemaname = current_schema() and indexname not in (select conname from pg_constraint)
    order by tablename, indexname`
  const unlogged = await sql<{ table: string; line: string }>`
    select relname as table, '  unlogged' as line
    from pg_class where relnamespace = current_schema()::regnamespace and relkind = 'r' and relpersistence = 'u'`
  const tables = [...new Set(columns.map(({ table }) => table))]
  const describeTable = (table: string) =>
    [...columns, ...constraints, ...indexes, ...unlogged].filter(row => row.table === table).map(row => row.line)
  return tables
    .map(table => [table, ...describeTable(table)].join('\n'))
    .join('\n\n')
    .concat('\n')
}
