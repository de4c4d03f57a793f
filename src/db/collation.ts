import type { Query } from './sql.ts'

/**
 * Returns whether the sort order of the database's locale may have changed, for example by an upgrade of the operating
 * system. The indexes of texts then miss rows, unless their collation is "C". All our keys have this collation.
 */
export async function hasOtherCollation(sql: Query): Promise<boolean> {
  const [row] = await sql<{ differs: boolean }>`
    select coalesce(datcollversion <> pg_database_collation_actual_version(oid), false) as differs
    from pg_database where datname = current_database()`
  return row!.differs
}
