import { randomInt, randomUUID } from 'node:crypto'
import type { Profile } from '../accounts/users.ts'
import type { Sql } from '../db/sql.ts'
import type { Keys } from '../keys.ts'
import type { Language } from '../language.ts'
import {
  CODE_LIFETIME_MS,
  GUESSES_BEFORE_BACKOFF,
  GUESSES_PER_DOUBLING,
  MAX_DOUBLINGS,
  MAX_WAIT_SECONDS,
  PENDING_SIGN_UP_MS,
  SEND_COOLDOWN_SECONDS,
} from './code-limits.ts'
import type { Lane } from './codes.ts'

/** Where to send a code, and for what: a sign-up with a profile, or a sign-in. The mail is in the given language. */
export type CodeRequest = { lane: Lane; profile: Profile | undefined; language: Language }

export type Issued =
  /** `waitSeconds`: how long the same caller must wait before the next code. */
  | { outcome: 'sent'; isDecoy: boolean; waitSeconds: number }
  /** A sign-up with an address that has an account. */
  | { outcome: 'registered' }
  | { outcome: 'wait'; waitSeconds: number }

/**
 * Issues a new code for a lane in one statement: replaces the lane's old code and queues the mail, or refuses. An
 * unknown address takes the same steps with a decoy code, and the worker drops its mail.
 *
 * A request without a profile resumes a pending sign-up of the address, and otherwise is a sign-in.
 */
export async function issueCode(
  sql: Sql,
  keys: Keys,
  { lane, profile, language }: CodeRequest,
  now: Date,
): Promise<Issued> {
  const id = randomUUID()
  const code = randomInt(10_000).toString().padStart(4, '0')
  const { purpose, is_sent, wait_seconds } = await storeCode(sql, {
    ...lane,
    signsUp: profile !== undefined,
    profile,
    id,
    mac: keys.mac(id, code),
    job: JSON.stringify({ code_id: id, sealed: keys.seal(id, code), language }),
    now,
    expiresAt: new Date(now.getTime() + CODE_LIFETIME_MS),
    cooldownStart: new Date(now.getTime() - SEND_COOLDOWN_SECONDS * 1000),
    pendingSince: new Date(now.getTime() - PENDING_SIGN_UP_MS),
  })
  if (is_sent) return { outcome: 'sent', isDecoy: purpose === 'decoy', waitSeconds: wait_seconds }
  if (purpose === 'registered') return { outcome: 'registered' }
  return { outcome: 'wait', waitSeconds: wait_seconds }
}

type NewCode = Lane & {
  signsUp: boolean
  profile: Profile | undefined
  id: string
  mac: Buffer
  /** JSON of the mail's job. */
  job: string
  now: Date
  expiresAt: Date
  /** A send after this time blocks another one. */
  cooldownStart: Date
  /** An unfinished sign-up whose last send is older cannot be resumed. */
  pendingSince: Date
}
type Stored = { purpose: 'registered' | 'sign_up' | 'sign_in' | 'decoy'; is_sent: boolean; wait_seconds: number }

/**
 * Runs the statement of `issueCode`. Concurrent requests meet at the row of `sign_in_address`: PostgreSQL checks the
 * condition of `on conflict … where` again under the row's lock, so only one of them sends. `caller` is materialized,
 * because the planner would look for the account twice otherwise.
 */
async function storeCode(sql: Sql, code: NewCode): Promise<Stored> {
  const { email, sessionId, signsUp, profile, id, mac, job, now, expiresAt, cooldownStart, pendingSince } = code
  const [stored] = await sql<Stored>`
    with caller as materialized (
      select ${signsUp}::boolean as signs_up, exists (select from app_user where email = ${email}) as is_registered
    ), pending as (
      -- The profile of a sign-up whose code has not been used.
      select first_name, last_name, terms_version, terms_accepted_at
      from sign_in_code
      where email = ${email} and session_id is null and purpose = 'sign_up' and sent_at > ${pendingSince}
    ), purpose as (
      select signs_up,
        case
          when signs_up and is_registered then 'registered'
          when is_registered then 'sign_in'
          when signs_up or exists (select from pending) then 'sign_up'
          else 'decoy'
        end as purpose
      from caller
    ), lane_wait as (
      -- The wait after each send in this lane, which grows with the wrong guesses, and the end of the current wait.
      select purpose, seconds, sent_at + make_interval(secs => seconds) as ends_at
      from (
        select purpose, sent_at, least(${MAX_WAIT_SECONDS}, ${SEND_COOLDOWN_SECONDS} * 2 ^ greatest(0, least(
          ${MAX_DOUBLINGS}, (wrong_guesses - ${GUESSES_BEFORE_BACKOFF}) / ${GUESSES_PER_DOUBLING}))) as seconds
        from sign_in_code
        where email = ${email} and session_id is not distinct from ${sessionId}::uuid) as lane
    ), send_slot as (
      -- One row if this request may send. The cooldown is over all lanes of the address.
      insert into sign_in_address (email, sent_at, mailed)
      select ${email}, ${now}, purpose <> 'decoy'
      from purpose
      where purpose <> 'registered' and not exists (
        select from lane_wait where ends_at > ${now} and not (lane_wait.purpose = 'decoy' and signs_up))
      on conflict on constraint sign_in_address_pkey do update
        set sent_at = excluded.sent_at, mailed = excluded.mailed
        where sign_in_address.sent_at <= ${cooldownStart}
          -- "A sign-up that follows a sign-in which sent no mail need not wait."
          or (not sign_in_address.mailed and ${signsUp}::boolean)
      returning email
    ), code as (
      -- A sign-up code carries the profile of this request, or of the pending sign-up that it resumes.
      insert into sign_in_code (id, email, session_id, purpose, mac, sent_at, expires_at,
        first_name, last_name, terms_version, terms_accepted_at)
      select ${id}, send_slot.email, ${sessionId}, purpose, ${mac}, ${now}, ${expiresAt},
        coalesce(${profile?.firstName}, first_name), coalesce(${profile?.lastName}, last_name),
        coalesce(${profile?.termsVersion}, terms_version), coalesce(${profile?.termsAcceptedAt}, terms_accepted_at)
      from send_slot cross join purpose left join pending on purpose = 'sign_up'
      on conflict on constraint sign_in_code_lane_key do update set
        id = excluded.id, purpose = excluded.purpose, mac = excluded.mac, attempts = 0, sent_at = excluded.sent_at,
        expires_at = excluded.expires_at, first_name = excluded.first_name, last_name = excluded.last_name,
        terms_version = excluded.terms_version, terms_accepted_at = excluded.terms_accepted_at
      returning id
    ), mail as (
      -- Each code has its own key, so no job is merged or dropped. This mode takes half the statements.
      select graphile_worker.add_job('send_code', ${job}::json, job_key => id::text, job_key_mode => 'unsafe_dedupe')
      from code
    )
    select purpose.purpose, exists (select from mail) as is_sent,
      case when exists (select from mail) then coalesce((select seconds from lane_wait), ${SEND_COOLDOWN_SECONDS})
        else greatest(1, ceil(extract(epoch from greatest(
          (select ends_at from lane_wait),
          (select sent_at + make_interval(secs => ${SEND_COOLDOWN_SECONDS})
            from sign_in_address where email = ${email}),
          -- A request that lost the race to a concurrent one sees neither row.
          ${now}::timestamptz) - ${now}::timestamptz)))
      end::int as wait_seconds
    from purpose`
  return stored!
}
