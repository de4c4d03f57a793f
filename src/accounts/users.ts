import type { Query, Sql } from '../db/sql.ts'
import type { Language } from '../language.ts'
import type { UserRow } from './schema.ts'

/** What a person told us when they signed up. */
export type Profile = { firstName: string; lastName: string; termsVersion: string; termsAcceptedAt: Date }

/** The profile with its chosen level. */
export async function find(sql: Query, userId: number): Promise<UserRow | undefined> {
  const [user] = await sql<UserRow>`
    select app_user.id, email, first_name, last_name, locale, created_at, updated_at,
      game_level.id as level_id, slug, name, description, position
    from app_user left join game_level on game_level.id = game_level_id
    where app_user.id = ${userId}`
  return user
}

/** The same, by address. */
export async function findByEmail(sql: Sql, email: string): Promise<UserRow | undefined> {
  const [user] = await sql<{ id: number }>`select id from app_user where email = ${email}`
  return user && find(sql, user.id)
}

/** How to speak of somebody, and to them. */
export type Person = { firstName: string; locale: Language }

/** Who of these have an account. Until the transaction ends none of them can be deleted. */
export async function lockForShare(sql: Sql, userIds: readonly number[]): Promise<Map<number, Person>> {
  const rows = await sql<{ id: number; first_name: string; locale: Language }>`
    select id, first_name, locale from app_user where id = any(${userIds}::bigint[]) order by id for key share`
  return new Map(rows.map(row => [row.id, { firstName: row.first_name, locale: row.locale }]))
}

/** Chooses a level, in place of an earlier choice. @returns undefined when there is no such level (or user) */
export async function chooseLevel(sql: Sql, userId: number, levelId: number, now: Date): Promise<UserRow | undefined> {
  const [user] = await sql<UserRow>`
    update app_user set game_level_id = game_level.id, updated_at = ${now}
    from game_level
    where app_user.id = ${userId} and game_level.id = ${levelId}
    returning app_user.id, email, first_name, last_name, locale, created_at, updated_at,
      game_level.id as level_id, slug, name, description, position`
  return user
}

/** Keeps an account for this transaction alone: whoever wants to `hold` it waits. @returns whether it is there */
export async function lock(sql: Sql, userId: number): Promise<boolean> {
  const found = await sql`select id from app_user where id = ${userId} for update`
  return found.length > 0
}

/** Deletes the account; what hangs on it by foreign key goes too. @returns its address, or undefined when there is none */
export async function remove(sql: Sql, userId: number): Promise<string | undefined> {
  const [removed] = await sql<{ email: string }>`delete from app_user where id = ${userId} returning email`
  return removed?.email
}

/** What is held on a user here (`users export`). */
export async function exportUserData(sql: Sql, userId: number) {
  const [user] = await sql`
    select app_user.id, email, first_name, last_name, locale, game_level.slug as game_level, terms_version,
      terms_accepted_at, created_at, updated_at
    from app_user left join game_level on game_level.id = game_level_id
    where app_user.id = ${userId}`
  return user
}
