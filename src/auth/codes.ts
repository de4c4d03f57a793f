import { randomInt } from 'node:crypto'
import type { Sql } from '../db/sql.ts'
import { MAX_ATTEMPTS, PENDING_SIGN_UP_MS, SEND_COOLDOWN_SECONDS, WRONG_GUESSES_KEPT_MS } from './code-limits.ts'

// The number of rows in the table `missed_guess` (migrations/0001_accounts.sql). If there is no live code, `reserve`
// updates a random row of this table. Concurrent guesses wait for each other only if they update the same row.
const MISSED_GUESS_SLOTS = 64

/**
 * One lane of an e-mail address. A known client has its own lane, whose `sessionId` is the id of the client's session.
 * All other clients share one lane, whose `sessionId` is undefined.
 */
export type Lane = { email: string; sessionId?: string | undefined }

/** A live code for which one attempt has been reserved. `mac` is the keyed hash of the code. */
export type Attempt = { id: string; mac: Buffer }

/**
 * Reserves one attempt at the lane's live code. One statement counts the attempt and commits. The caller compares the
 * codes after the commit. At the time of the statement it is unknown whether the typed code is correct, so the
 * statement counts every attempt as a wrong guess. If the typed code is correct, the caller deletes the code's row, and
 * the count with it.
 *
 * If there is no live code, the statement updates a row of `missed_guess` instead. Both cases take the same time, so
 * the duration of the request does not reveal whether there is a code.
 *
 * If the lane of a known client has no live code, `reserve` uses the code of the shared lane. All lanes of an address
 * share one cooldown. So if a stranger requests a code every minute, the known client gets no code for its own lane.
 * But each request of the stranger sends a code of the shared lane to the address. The known client can use this code
 * (decisions.md, "which code a client verifies").
 * @returns undefined if neither `lane` nor the shared lane has a live code
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
 * Uses up a code. The caller must have checked that the typed code is correct. `spend` deletes the code's row, which
 * contains the count of wrong guesses. If several requests with the code run concurrently, only one of these requests
 * deletes the row. `spend` finds the row by the id of the code. If a new code replaced this code after the comparison,
 * the row has the id of the new code. So `spend` deletes nothing, and the new code stays.
 * @returns whether this request deleted the row
 */
export async function spend(sql: Sql, attempt: Attempt): Promise<boolean> {
  const spent = await sql`delete from sign_in_code where id = ${attempt.id} and purpose <> 'decoy' returning id`
  return spent.length > 0
}

/**
 * Resets the wrong guesses and the waits in all lanes of an address, for the command `users unlock`. Codes and pending
 * sign-ups remain.
 * @returns false if the table `sign_in_address` does not contain the address. The table contains only addresses for
 *   which a client requested a code recently
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
 * Deletes from the table `sign_in_address` each address whose last code was sent more than a day ago, and also deletes
 * all codes of the address. As an exception, an address with wrong guesses stays for 30 days after its last code.
 * Without this exception, an attacker could reset the count of wrong guesses by waiting for a day.
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

/** Returns the rows of a user's codes without the hashes, for the command `users export`. */
export async function exportUserData(sql: Sql, userId: number) {
  return sql`
    select sign_in_code.email, session_id, purpose, attempts, wrong_guesses, sent_at, expires_at
    from sign_in_code join app_user on app_user.email = sign_in_code.email
    where app_user.id = ${userId}`
}
