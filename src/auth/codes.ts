import { randomInt, randomUUID } from 'node:crypto'
import type { Profile } from '../accounts/users.ts'
import type { Sql } from '../db/sql.ts'
import type { Keys } from '../keys.ts'
import type { Language } from '../language.ts'

// "A code of 4 digits is emailed and stored for 15 minutes"; "at most 5 verification attempts".
const LIFETIME_MS = 15 * 60_000

/** Of a sign-up whose code wasn't used, to be resumed with the address alone (decisions.md, "how long a sign-up stays pending"). */
const PENDING_MS = 24 * 3_600_000

/** How long the wrong guesses at an address are remembered that nobody signs in to. */
const GUESSES_MS = 30 * 86_400_000

// A guess at nothing writes to one of these rows (see migrations/0001), spread so that none is fought over.
const MISSED_SLOTS = 64

/** Where a code is asked for: the address, and the lane of a known client or undefined for everybody's. */
export type Lane = { email: string; sessionId: string | undefined }

export type Requested =
  | { outcome: 'sent'; decoy: boolean }
  /** A sign-up with an address that has an account. */
  | { outcome: 'registered' }
  | { outcome: 'wait'; seconds: number }

/**
 * Makes a new code for the lane, kills the old one, and queues its mail, all in one statement; or refuses. An address
 * unknown to us goes through the same statement with a decoy in place of the code, which the worker drops.
 *
 * The row of `sign_in_address` decides the race: its `on conflict … where` is re-checked under the row's lock, so of
 * several requests at once one sends.
 * @param profile present in a sign-up; an address alone resumes a pending sign-up, else is a sign-in
 */
export async function request(
  sql: Sql,
  keys: Keys,
  { email, sessionId = null }: { email: string; sessionId?: string | null | undefined },
  profile: Profile | undefined,
  language: Language,
  now: Date,
): Promise<Requested> {
  const id = randomUUID()
  const code = randomInt(10_000).toString().padStart(4, '0')
  const job = { code_id: id, sealed: keys.seal(id, code), language }
  const [result] = await sql<{ purpose: string; sent: boolean; wait_seconds: number }>`
    with asked as (
      select ${profile !== undefined}::boolean as signs_up,
        exists (select from app_user where email = ${email}) as registered
    ), pending as (
      select first_name, last_name, terms_version, terms_accepted_at
      from sign_in_code
      where email = ${email} and session_id is null and purpose = 'sign_up'
        and sent_at > ${new Date(now.getTime() - PENDING_MS)}
    ), send as (
      select
        case
          when signs_up and registered then 'registered'
          when registered then 'sign_in'
          when signs_up or exists (select from pending) then 'sign_up'
          else 'decoy'
        end as purpose,
        signs_up
      from asked
    ), lane as (
      -- "from the tenth on, every further 5 double the wait before the next send (60 s, 2 min, 4 min … at most 4 h)"
      select purpose, sent_at
        + least(interval '4 hours', interval '60 seconds' * 2 ^ least(10, greatest(0, (wrong_guesses - 10) / 5)))
        as free_at
      from sign_in_code
      where email = ${email} and session_id is not distinct from ${sessionId}::uuid
    ), held as (
      insert into sign_in_address (email, sent_at, mailed)
      select ${email}, ${now}, purpose <> 'decoy'
      from send
      where purpose <> 'registered' and not exists (
        select from lane where free_at > ${now} and not (lane.purpose = 'decoy' and signs_up))
      on conflict on constraint sign_in_address_pkey do update
        set sent_at = excluded.sent_at, mailed = excluded.mailed
        where sign_in_address.sent_at <= ${new Date(now.getTime() - 60_000)}
          -- "A sign-up that follows a sign-in which sent no mail need not wait."
          or (not sign_in_address.mailed and ${profile !== undefined}::boolean)
      returning email
    ), code as (
      insert into sign_in_code (id, email, session_id, purpose, mac, sent_at, expires_at,
        first_name, last_name, terms_version, terms_accepted_at)
      select ${id}, held.email, ${sessionId}, purpose, ${keys.mac(id, code)}, ${now},
        ${new Date(now.getTime() + LIFETIME_MS)}, profile.first_name, profile.last_name, profile.terms_version,
        profile.terms_accepted_at
      from held cross join send left join (
        select ${profile?.firstName}::text as first_name, ${profile?.lastName}::text as last_name,
          ${profile?.termsVersion}::text as terms_version, ${profile?.termsAcceptedAt}::timestamptz as terms_accepted_at
        from asked where signs_up
        union all
        select first_name, last_name, terms_version, terms_accepted_at from pending, asked where not signs_up
      ) as profile on purpose = 'sign_up'
      on conflict on constraint sign_in_code_lane_key do update set
        id = excluded.id, purpose = excluded.purpose, mac = excluded.mac, attempts = 0, sent_at = excluded.sent_at,
        expires_at = excluded.expires_at, first_name = excluded.first_name, last_name = excluded.last_name,
        terms_version = excluded.terms_version, terms_accepted_at = excluded.terms_accepted_at
      returning id
    ), queued as (
      -- The key is a new one each time, so that nothing is ever merged or dropped; this mode takes half the statements.
      select graphile_worker.add_job('send_code', ${JSON.stringify(job)}::json, job_key => id::text,
        job_key_mode => 'unsafe_dedupe')
      from code
    )
    select send.purpose, exists (select from queued) as sent,
      greatest(1, ceil(extract(epoch from greatest(
        (select free_at from lane),
        (select sent_at + interval '60 seconds' from sign_in_address where email = ${email}),
        -- Only a request that lost the race to another just now sees neither.
        ${now}::timestamptz) - ${now}::timestamptz)))::int as wait_seconds
    from send`
  if (result!.sent) return { outcome: 'sent', decoy: result!.purpose === 'decoy' }
  if (result!.purpose === 'registered') return { outcome: 'registered' }
  return { outcome: 'wait', seconds: result!.wait_seconds }
}

/** A live code against which one attempt has been reserved. */
export type Attempt = { id: string; mac: Buffer }

/**
 * Reserves one of the five attempts at the lane's live code, in one statement that commits whatever the outcome. It counts
 * as a wrong guess until a success takes the row away. Where there is no live code, a row elsewhere is written instead:
 * "one and the same 422, after the same work".
 *
 * A known client whose own lane has no live code tries everybody's: the 60 s hold over all lanes, so that a stranger who asks
 * each minute would else keep it from ever having one (decisions.md, "which code a client verifies").
 */
export async function reserve(sql: Sql, { email, sessionId }: Lane, now: Date): Promise<Attempt | undefined> {
  const [attempt] = await sql<Attempt>`
    with live as (
      select id from sign_in_code
      where email = ${email} and (session_id = ${sessionId}::uuid or session_id is null)
        and expires_at > ${now} and attempts < 5
      order by session_id nulls last
      limit 1
      for update
    ), missed as (
      update missed_guess set guesses = guesses + 1
      where slot = ${randomInt(MISSED_SLOTS)} and not exists (select from live)
    )
    update sign_in_code set attempts = attempts + 1, wrong_guesses = wrong_guesses + 1
    from live where sign_in_code.id = live.id
    returning sign_in_code.id, mac`
  return attempt
}

/**
 * Uses a code up for nothing but the proof that it was right: its row goes, and with it the count of wrong guesses, since this
 * is a success. Of several requests with the right code one gets the row, and a code that was superseded meanwhile has another
 * id. @returns whether this was the one
 */
export async function spend(sql: Sql, attempt: Attempt): Promise<boolean> {
  const spent = await sql`delete from sign_in_code where id = ${attempt.id} and purpose <> 'decoy' returning id`
  return spent.length > 0
}

/**
 * Forgets wrong guesses and waits of an address, in all its lanes (an operator's `users unlock`). What lives there stays: a code, a
 * pending sign-up. @returns whether a code was asked for there at all
 */
export async function unlock(sql: Sql, email: string): Promise<boolean> {
  const unlocked = await sql`
    with code as (
      update sign_in_code set wrong_guesses = 0, sent_at = sent_at - interval '60 seconds' where email = ${email}
    )
    update sign_in_address set sent_at = sent_at - interval '60 seconds' where email = ${email} returning email`
  return unlocked.length > 0
}

/** Takes away all that is kept of an address: codes, waits, pending sign-ups. */
export async function removeAll(sql: Sql, email: string): Promise<void> {
  await sql`delete from sign_in_address where email = ${email}`
}

/** The same, for whoever owns the account. */
export async function removeUser(sql: Sql, userId: number): Promise<void> {
  await sql`delete from sign_in_address where email = (select email from app_user where id = ${userId})`
}

/**
 * Deletes addresses, with their codes, that nobody has asked about for a day; those with wrong guesses for 30 days, since
 * these count "since its last success". @returns how many
 */
export async function prune(sql: Sql, now: Date, limit: number): Promise<number> {
  const gone = await sql`
    delete from sign_in_address where email in (
      select email from sign_in_address as address
      where sent_at < ${new Date(now.getTime() - PENDING_MS)} and not exists (
        select from sign_in_code as code
        where code.email = address.email and wrong_guesses > 0
          and code.sent_at > ${new Date(now.getTime() - GUESSES_MS)})
      limit ${limit})
    returning email`
  return gone.length
}

/** What is held on a user here (`users export`); the hash of a code says nothing to anybody. */
export async function exportUserData(sql: Sql, userId: number) {
  return sql`
    select sign_in_code.email, session_id, purpose, attempts, wrong_guesses, sent_at, expires_at
    from sign_in_code join app_user on app_user.email = sign_in_code.email
    where app_user.id = ${userId}`
}
