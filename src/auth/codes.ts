import { randomInt } from 'node:crypto'
import type { Sql } from '../db/sql.ts'
import { MAX_ATTEMPTS, PENDING_SIGN_UP_MS, SEND_COOLDOWN_SECONDS, WRONG_GUESSES_KEPT_MS } from './code-limits.ts'

// The number of rows in `missed_guess` (migrations/0001). With so many rows, concurrent guesses rarely wait for the
// same row.
const MISSED_GUESS_SLOTS = 64

/**
 * The e-mail address, and the session of a known client. All other clients share the address's lane without a
 * `sessionId`.
 */
export type Lane = { email: string; sessionId?: string | undefined }

/** A live code of which one attempt has been reserved. */
export type Attempt = { id: string; mac: Buffer }

/**
 * Reserves one attempt at the lane's live code, in one statement that commits before the comparison. The attempt counts
 * as a wrong guess until a success deletes the row. If there is no live code, the statement updates `missed_guess`
 * instead. So the caller cannot tell the two cases apart by their time.
 *
 * If the lane of a known client has no live code, the attempt uses the code of the shared lane. All lanes of an address
 * share one cooldown. So a stranger who requests a code every minute could keep the client's own lane without a code
 * (decisions.md, "which code a client verifies").
 * @returns undefined if neither lane has a live code
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
 * Uses up a correct code that proves ownership of the account. Deletes the code's row, which also holds the count of
 * wrong guesses. Of several concurrent requests, only one deletes the row. If the code was replaced after the
 * comparison, the new code has another id and stays.
 * @returns whether this request deleted the row
 */
export async function spend(sql: Sql, attempt: Attempt): Promise<boolean> {
  const spent = await sql`delete from sign_in_code where id = ${attempt.id} and purpose <> 'decoy' returning id`
  return spent.length > 0
}

/**
 * Resets the wrong guesses and the waits of an address in all its lanes, for the command `users unlock`. Codes and
 * pending sign-ups remain.
 * @returns false if nobody requested a code for the address recently
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

/** Deletes an address with its codes, waits and pending sign-ups. */
export async function removeAll(sql: Sql, email: string): Promise<void> {
  await sql`delete from sign_in_address where email = ${email}`
}

/** Does the same as `removeAll`, for the address of a user's account. */
export async function removeUser(sql: Sql, userId: number): Promise<void> {
  await sql`delete from sign_in_address where email = (select email from app_user where id = ${userId})`
}

/**
 * Deletes addresses to which the last code was sent more than a day ago, with their codes. An address with wrong
 * guesses stays for 30 days, because the count of wrong guesses must survive until the next successful sign-in.
 * @param limit the maximum number of addresses to delete
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

/** Returns the codes of a user without their hashes, for the command `users export`. */
export async function exportUserData(sql: Sql, userId: number) {
  return sql`
    select sign_in_code.email, session_id, purpose, attempts, wrong_guesses, sent_at, expires_at
    from sign_in_code join app_user on app_user.email = sign_in_code.email
    where app_user.id = ${userId}`
}
