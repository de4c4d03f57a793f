import type { Sql } from '../db/sql.ts'
import { MAILS_KEPT_MS, PENDING_SIGN_UP_MS } from './code-limits.ts'
import { DELETE_PROFILE } from './pending-profile.ts'

const DAY_MS = 86_400_000

/**
 * Clears the waits and the budget of an address, for the command `users unlock`. Codes and pending sign-ups remain.
 * @returns false if the table `sign_in_address` does not contain the address. The table contains only addresses for
 *   which a client requested a code recently
 */
export async function unlock(sql: Sql, email: string): Promise<boolean> {
  const unlocked = await sql`
    with address as (
      update sign_in_address set guesses_full_at = null, guesses = 0, guesses_since = null,
        sent_at = 'epoch'
      where email = ${email} returning email
    ), code as (
      update sign_in_code set mails = 0 where email = ${email}
    ), known as (
      update session set code_sent_at = null
      from app_user where app_user.id = session.user_id and app_user.email = ${email} and code_sent_at is not null
    )
    select email from address`
  return unlocked.length > 0
}

/** Deletes an address from the table `sign_in_address`, and all codes, waits and pending sign-ups of the address. */
export async function removeAll(sql: Sql, email: string): Promise<void> {
  await sql`delete from sign_in_address where email = ${email}`
}

/**
 * Deletes the address of a user from the table `sign_in_address`, and all codes, waits and pending sign-ups of the
 * address.
 */
export async function removeUser(sql: Sql, userId: number): Promise<void> {
  await sql`delete from sign_in_address where email = (select email from app_user where id = ${userId})`
}

/**
 * Deletes codes whose last mail is so old that the count of mails starts again at zero.
 * @param limit the maximum number of codes to delete
 * @returns the number of deleted codes
 */
export async function pruneCodes(sql: Sql, now: Date, limit: number): Promise<number> {
  const deleted = await sql`
    delete from sign_in_code where id in (
      select id from sign_in_code where sent_at <= ${new Date(now.getTime() - MAILS_KEPT_MS)} limit ${limit})
    returning id`
  return deleted.length
}

/**
 * Deletes the names of sign-ups that are not pending any more. The row stays, because it counts the mails to a network.
 * @param limit the maximum number of rows to change
 * @returns the number of changed rows
 */
export async function pruneSignUps(sql: Sql, now: Date, limit: number): Promise<number> {
  const changed = await sql`
    update sign_in_code set purpose = 'decoy', ${DELETE_PROFILE}
    where id in (
      select id from sign_in_code
      where purpose = 'sign_up' and sent_at <= ${new Date(now.getTime() - PENDING_SIGN_UP_MS)} and expires_at <= ${now}
      limit ${limit})
    returning id`
  return changed.length
}

/**
 * Deletes addresses without codes whose last request is more than a day ago. An address stays until its budget is full.
 * Otherwise, an attacker could get a new budget by waiting for a day.
 * @param limit the maximum number of addresses to delete
 * @returns the number of deleted addresses
 */
export async function pruneAddresses(sql: Sql, now: Date, limit: number): Promise<number> {
  const dayAgo = new Date(now.getTime() - DAY_MS)
  const deleted = await sql`
    delete from sign_in_address where email in (
      select email from sign_in_address as address
      where sent_at < ${dayAgo} and coalesce(asked_at < ${dayAgo}, true)
        and coalesce(guesses_full_at <= ${now}, true) and coalesce(guesses_since <= ${dayAgo}, true)
        and not exists (select from sign_in_code as code where code.email = address.email)
      limit ${limit})
      and sent_at < ${dayAgo} and coalesce(asked_at < ${dayAgo}, true)
    returning email`
  return deleted.length
}

/**
 * Deletes networks whose budget is full and whose windows are over.
 * @param limit the maximum number of networks to delete
 * @returns the number of deleted networks
 */
export async function pruneNetworks(sql: Sql, now: Date, limit: number): Promise<number> {
  const dayAgo = new Date(now.getTime() - DAY_MS)
  const deleted = await sql`
    delete from sign_in_network where network in (
      select network from sign_in_network
      where coalesce(guesses_full_at <= ${now}, true) and coalesce(guesses_since <= ${dayAgo}, true)
        and coalesce(sign_ups_since <= ${dayAgo}, true)
      limit ${limit})
      and coalesce(guesses_since <= ${dayAgo}, true) and coalesce(sign_ups_since <= ${dayAgo}, true)
    returning network`
  return deleted.length
}

/** Returns the rows of a user's codes without hashes and sealed codes, for the command `users export`. */
export async function exportUserData(sql: Sql, userId: number) {
  return sql`
    select code.email, session_id, purpose, attempts, code.mails, code.sent_at, expires_at,
      address.guesses as guesses_in_window, guesses_since, guesses_full_at
    from app_user join sign_in_address as address on address.email = app_user.email
      left join sign_in_code as code on code.email = address.email
    where app_user.id = ${userId}
    order by code.sent_at`
}
