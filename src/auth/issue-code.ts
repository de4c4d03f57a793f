import { randomInt, randomUUID } from 'node:crypto'
import type { Profile } from '../accounts/users.ts'
import type { Sql } from '../db/sql.ts'
import type { Keys } from '../keys.ts'
import type { Language } from '../language.ts'
import { MAIL_CLASSES } from '../limits/mail-backlog.ts'
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

/**
 * A request for a code. A request with a `profile` is a sign-up. A request without a `profile` is a sign-in, or it
 * resumes a pending sign-up. `language` is the language of the mail.
 */
export type CodeRequest = { lane: Lane; profile: Profile | undefined; language: Language }

export type Issued =
  /** `waitSeconds` is the time that the same client must wait before it requests the next code. */
  | { outcome: 'sent'; isDecoy: boolean; waitSeconds: number }
  /** No code was issued, because the request is a sign-up and the address already has an account. */
  | { outcome: 'registered' }
  | { outcome: 'wait'; waitSeconds: number }

/**
 * Issues a new code for a lane, or refuses the request. One statement replaces the old code of the lane and adds a
 * row to the outbox. A worker then sends the mail. For an unknown address, the statement stores a decoy and also adds a
 * row, but the worker sends no mail for this row.
 *
 * If the address has a pending sign-up, a request without a profile resumes this sign-up. Otherwise a request without a
 * profile is a sign-in.
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
    mail: JSON.stringify({ sealed: keys.seal(id, code), language }),
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
  /** The payload of the delivery, as JSON. */
  mail: string
  now: Date
  expiresAt: Date
  /**
   * The time that is one cooldown before `now`. If the last code to the address was sent after this time, the cooldown
   * is not over.
   */
  cooldownStart: Date
  /**
   * The time that is 24 hours before `now`. A request can resume a pending sign-up only if the last code of the sign-up
   * was sent after this time.
   */
  pendingSince: Date
}
type Stored = { purpose: 'registered' | 'sign_up' | 'sign_in' | 'decoy'; is_sent: boolean; wait_seconds: number }

/**
 * Runs the statement of `issueCode`. Concurrent requests for one address wait for the lock on the address's row in
 * `sign_in_address`. The first request that gets the lock writes its own time to the column `sent_at`. When the next
 * request gets the lock, PostgreSQL checks the condition of `on conflict … where` against the new version of the row.
 * The condition refuses this request, because the cooldown is not over. As the only exception, the condition accepts a
 * sign-up after a decoy, because no mail was sent for the decoy. So at most one of the concurrent requests sends a
 * mail.
 *
 * The subquery `purpose` uses the column `is_registered` of the subquery `caller` twice. Without the keyword
 * `materialized`, PostgreSQL would search for the account twice.
 */
async function storeCode(sql: Sql, code: NewCode): Promise<Stored> {
  const { email, sessionId, signsUp, profile, id, mac, mail, now, expiresAt, cooldownStart, pendingSince } = code
  const [stored] = await sql<Stored>`
    with caller as materialized (
      select ${signsUp}::boolean as signs_up, exists (select from app_user where email = ${email}) as is_registered
    ), pending as (
      -- The profile of the address's pending sign-up. A sign-up is pending until its code is used, but for at most one
      -- day after its last code.
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
      -- The column seconds is the length of the wait between two codes of this lane. Wrong guesses lengthen the wait.
      -- The column ends_at is the end of the wait after the last code.
      select purpose, seconds, sent_at + make_interval(secs => seconds) as ends_at
      from (
        select purpose, sent_at, least(${MAX_WAIT_SECONDS}, ${SEND_COOLDOWN_SECONDS} * 2 ^ greatest(0, least(
          ${MAX_DOUBLINGS}, (wrong_guesses - ${GUESSES_BEFORE_BACKOFF}) / ${GUESSES_PER_DOUBLING}))) as seconds
        from sign_in_code
        where email = ${email} and session_id is not distinct from ${sessionId}::uuid) as lane
    ), send_slot as (
      -- This subquery contains one row if this request may send a code. The table sign_in_address has one row for each
      -- address, so all lanes of an address share the cooldown.
      insert into sign_in_address (email, sent_at, mailed)
      select ${email}, ${now}, purpose <> 'decoy'
      from purpose
      where purpose <> 'registered' and not exists (
        select from lane_wait where ends_at > ${now} and not (lane_wait.purpose = 'decoy' and signs_up))
      on conflict on constraint sign_in_address_pkey do update
        set sent_at = excluded.sent_at, mailed = excluded.mailed
        where sign_in_address.sent_at <= ${cooldownStart}
          -- A sign-up may follow immediately after a sign-in for which no mail was sent.
          or (not sign_in_address.mailed and ${signsUp}::boolean)
      returning email
    ), code as (
      -- If the request starts a sign-up, the new row contains the profile of the request. If the request resumes a
      -- pending sign-up, the new row contains the profile of that sign-up.
      insert into sign_in_code (id, email, session_id, purpose, mac, sent_at, expires_at,
        first_name, last_name, terms_version, terms_accepted_at)
      select ${id}, send_slot.email, ${sessionId}, purpose, ${mac}, ${now}, ${expiresAt},
        coalesce(${profile?.firstName}, first_name), coalesce(${profile?.lastName}, last_name),
        coalesce(${profile?.termsVersion}, terms_version), coalesce(${profile?.termsAcceptedAt}, terms_accepted_at)
      from send_slot cross join purpose left join pending on purpose = 'sign_up' and not signs_up
      on conflict on constraint sign_in_code_lane_key do update set
        id = excluded.id, purpose = excluded.purpose, mac = excluded.mac, attempts = 0, sent_at = excluded.sent_at,
        expires_at = excluded.expires_at, first_name = excluded.first_name, last_name = excluded.last_name,
        terms_version = excluded.terms_version, terms_accepted_at = excluded.terms_accepted_at
      returning id, purpose
    ), mail as (
      -- Mails to known clients go first, then mails to accounts, then mails for sign-ups. A decoy has the class of the
      -- accounts, so its turn does not reveal that the address is unknown.
      insert into outbox (channel, class, created_at, due, code_id, payload)
      select 'mail', case when ${sessionId}::uuid is not null then ${MAIL_CLASSES.knownClient}::smallint
          when purpose = 'sign_up' then ${MAIL_CLASSES.signUp} else ${MAIL_CLASSES.account} end,
        ${now}, ${now}, id, ${mail}::jsonb
      from code
      returning id
    )
    select purpose.purpose, exists (select from mail) as is_sent,
      case when exists (select from mail) then coalesce((select seconds from lane_wait), ${SEND_COOLDOWN_SECONDS})
        else coalesce(
          (select ceil(extract(epoch from max(ends_at) - ${now}::timestamptz))
            from (
              select ends_at from lane_wait
              union all
              select sent_at + make_interval(secs => ${SEND_COOLDOWN_SECONDS}) from sign_in_address where email = ${email}
            ) as wait
            where ends_at > ${now}),
          -- If this statement's snapshot contains no wait, a concurrent request has just sent a code. The snapshot does
          -- not contain the rows of that request. So the answer names a whole cooldown.
          ${SEND_COOLDOWN_SECONDS})
      end::int as wait_seconds
    from purpose`
  return stored!
}
