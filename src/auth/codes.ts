import { randomInt } from 'node:crypto'
import type { Sql } from '../db/sql.ts'
import { MAX_ATTEMPTS, PENDING_SIGN_UP_MS, SEND_COOLDOWN_SECONDS, WRONG_GUESSES_KEPT_MS } from './code-limits.ts'

// The number of rows of `missed_guess` (migrations/0001). Concurrent guesses at missing codes rarely meet at one row.
const MISSED_GUESS_SLOTS = 64

/** An e-mail address, and the session of a known client. All clients without a usable session share one lane. */
export type Lane = { email: string; sessionId?: string | undefined }

/** A live code with one attempt reserved. */
export type Attempt = { id: string; mac: Buffer }

/**
 * Reserves one attempt at the lane's live code, in one statement that commits before the comparison. The attempt counts
 * as a wrong guess until a success deletes the row. If there is no live code, the statement writes to another table
 * instead: "one and the same 422, after the same work".
 *
 * If the lane of a known client has no live code, the attempt is at the code of the shared lane. The cooldown is over
 * all lanes, so a stranger who asks every minute could leave this client without a code (decisions.md, "which code a
 * client verifies").
 */
export async function reserve(sql: Sql, { email, sessionId }: Lane, now: Date): Promise<Attempt | undefined> {
  const [attempt] = await sql<Attempt>`
    with live as (
      select id from sign_in_code
      where email = ${email} and (session_id = ${sessionId}::uuid or session_id is null)
        and expires_at > ${now} and attempts < ${MAX_ATTEMPTS}
      order by session_id nulls last
      limit 1
      for update
    ), missed as (
      update missed_guess set guesses = guesses + 1
      where slot = ${randomInt(MISSED_GUESS_SLOTS)} and not exists (select from live)
    )
    update sign_in_code set attempts = attempts + 1, wrong_guesses = wrong_guesses + 1
    from live where sign_in_code.id = live.id
    returning sign_in_code.id, mac`
  return attempt
}

/**
 * Uses a right code up as a proof of ownership. Deletes its row, and with it the count of wrong guesses. Only one of
 * several concurrent requests deletes the row. A code that was replaced meanwhile has another id.
 * @returns whether this request used the code up
 */
export async function spend(sql: Sql, attempt: Attempt): Promise<boolean> {
  const spent = await sql`delete from sign_in_code where id = ${attempt.id} and purpose <> 'decoy' returning id`
  return spent.length > 0
}

/**
 * Resets the wrong guesses and the waits of an address in all its lanes (`users unlock`). Codes and pending sign-ups
 * stay.
 * @returns whether a code was ever requested for the address
 */
export async function unlock(sql: Sql, email: string): Promise<boolean> {
  const unlocked = await sql`
    with code as (
      update sign_in_code set wrong_guesses = 0, sent_at = sent_at - make_interval(secs => ${SEND_COOLDOWN_SECONDS})
      where email = ${email}
    )
    update sign_in_address set sent_at = sent_at - make_interval(secs => ${SEND_COOLDOWN_SECONDS})
    where email = ${email} returning email`
  return unlocked.length > 0
}

/** Deletes the address with its codes, waits and pending sign-ups. */
export async function removeAll(sql: Sql, email: string): Promise<void> {
  await sql`delete from sign_in_address where email = ${email}`
}

/** Does the same as `removeAll` for the address of a user. */
export async function removeUser(sql: Sql, userId: number): Promise<void> {
  await sql`delete from sign_in_address where email = (select email from app_user where id = ${userId})`
}

/**
 * Deletes addresses, with their codes, whose last send is over a day ago. Addresses with wrong guesses stay for 30
 * days, because wrong guesses count "since its last success".
 * @param limit the most rows to delete
 * @returns the number of deleted addresses
 */
export async function prune(sql: Sql, now: Date, limit: number): Promise<number> {
  const deleted = await sql`
    delete from sign_in_address where email in (
      select email from sign_in_address as address
      where sent_at < ${new Date(now.getTime() - PENDING_SIGN_UP_MS)} and not exists (
        select from sign_in_code as code
        where code.email = address.email and wrong_guesses > 0
          and code.sent_at > ${new Date(now.getTime() - WRONG_GUESSES_KEPT_MS)})
      limit ${limit})
    returning email`
  return deleted.length
}

/** Returns the codes of a user for `users export`, without their hashes. */
export async function exportUserData(sql: Sql, userId: number) {
  return sql`
    select sign_in_code.email, session_id, purpose, attempts, wrong_guesses, sent_at, expires_at
    from sign_in_code join app_user on app_user.email = sign_in_code.email
    where app_user.id = ${userId}`
}
