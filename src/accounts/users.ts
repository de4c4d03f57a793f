import type { Query, Sql } from '../db/sql.ts'
import { fragment } from '../db/statement.ts'
import type { Language } from '../language.ts'
import type { UserRow } from './schema.ts'

/**
 * The first id of guests: players without an account, whom a producer numbers itself. `migrations/0013_guest_ids.sql`
 * limits the ids of accounts to smaller numbers, so a guest never becomes the user of a later sign-up.
 */
export const FIRST_GUEST_ID = 2 ** 52

/** The names that a person enters at sign-up, and the version of the terms that the person accepts with the code. */
export type Profile = { firstName: string; lastName: string; termsVersion: string }

/**
 * The columns of a user and of the user's level that the API shows. A statement with this fragment must join the tables
 * `app_user` and `game_level`.
 */
const USER_COLUMNS = fragment`
  app_user.id, email, first_name, last_name, locale, created_at, updated_at,
  game_level.id as level_id, slug, name, description, position`

/** Returns a user and the user's level, or undefined if there is no such user. */
export async function find(sql: Query, userId: number): Promise<UserRow | undefined> {
  const [user] = await sql<UserRow>`
    select ${USER_COLUMNS}
    from app_user left join game_level on game_level.id = game_level_id
    where app_user.id = ${userId}`
  return user
}

/** Returns the user whose account has this e-mail address. `email` must be the canonical spelling. */
export async function findByEmail(sql: Sql, email: string): Promise<UserRow | undefined> {
  const [user] = await sql<{ id: number }>`select id from app_user where email = ${email}`
  return user && find(sql, user.id)
}

/**
 * A user as notifications need it: `firstName` is the name in the texts, and `locale` is the language of the texts to
 * this user.
 */
export type Person = { firstName: string; locale: Language }

/**
 * Locks the existing users among `userIds`, in ascending order of their ids. No other transaction can delete these
 * users until this transaction ends.
 * @returns the locked users, by id
 */
export async function lockForShare(sql: Sql, userIds: readonly number[]): Promise<Map<number, Person>> {
  const rows = await sql<{ id: number; first_name: string; locale: Language }>`
    select id, first_name, locale from app_user where id = any(${userIds}::bigint[]) order by id for key share`
  return new Map(rows.map(row => [row.id, { firstName: row.first_name, locale: row.locale }]))
}

/**
 * Sets the level of a user, even if the user already has a level.
 * @returns the user, or undefined if the level or the user does not exist
 */
export async function chooseLevel(sql: Sql, userId: number, levelId: number, now: Date): Promise<UserRow | undefined> {
  const [user] = await sql<UserRow>`
    update app_user set game_level_id = game_level.id, updated_at = ${now}
    from game_level
    where app_user.id = ${userId} and game_level.id = ${levelId}
    returning ${USER_COLUMNS}`
  return user
}

/**
 * Locks an account before its deletion. A concurrent transaction that calls `lockForShare` for this account waits until
 * this transaction ends.
 * @returns whether the account exists
 */
export async function lock(sql: Sql, userId: number): Promise<boolean> {
  const locked = await sql`select id from app_user where id = ${userId} for update`
  return locked.length > 0
}

/**
 * Deletes the account of a user. The foreign keys delete the rows that refer to the account.
 * @returns the e-mail address of the account, or undefined if there is no such user
 */
export async function remove(sql: Sql, userId: number): Promise<string | undefined> {
  const [removed] = await sql<{ email: string }>`delete from app_user where id = ${userId} returning email`
  return removed?.email
}

/** Returns the account of a user for the command `users export`. */
export async function exportUserData(sql: Sql, userId: number) {
  const [user] = await sql`
    select app_user.id, email, first_name, last_name, locale, game_level.slug as game_level, terms_version,
      terms_accepted_at, created_at, updated_at
    from app_user left join game_level on game_level.id = game_level_id
    where app_user.id = ${userId}`
  return user
}
