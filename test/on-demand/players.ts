import type { Database } from '../../src/db/sql.ts'

/** Four accounts, straight in the database of a service that nobody has signed up to. @returns their ids */
export async function makePlayers(sql: Database): Promise<number[]> {
  await sql`
    insert into app_user (email, first_name, last_name, locale, terms_version, terms_accepted_at, created_at, updated_at)
    select 'player' || n || '@example.com', 'P', 'P', 'fr', '1', now(), now(), now() from generate_series(1, 4) as n`
  return (await sql<{ id: number }>`select id from app_user order by id`).map(user => user.id)
}
