import { type Fragment, fragment, NOTHING } from '../db/statement.ts'
import { findLatestStart } from './clock-tolerance.ts'
import { MAX_ATTEMPTS, SEND_COOLDOWN_SECONDS } from './code-limits.ts'
import type { NewCode } from './new-code.ts'
import { PROFILE_COLUMNS, PROFILE_OF_SIGN_UP, REPLACE_PROFILE } from './pending-profile.ts'
import { COUNT_FOR_INSTALLATION, keptSignUps, wasCounted } from './sign-up-limits.ts'

/**
 * Returns the steps of the statement of `issueCode` that write. Each step is a subquery:
 * - `send_slot` contains one row if this request sends a code.
 * - `repeated` renews the requester's code, or `made` stores a new code.
 * - `issued` is the code that must be mailed.
 */
export function writeCode(code: NewCode): Fragment {
  const { sessionId, signUpLimits } = code
  return fragment`
    ${takeSendSlot(code)}, ${sessionId === undefined ? NOTHING : takeMailOfSession(sessionId, code)}
    ${signUpLimits ? COUNT_FOR_INSTALLATION : NOTHING} ${repeatCode(code)}, ${makeCode(code)}, issued as (
      select * from repeated union all select * from made
    )`
}

/**
 * Writes the time of the request to the row of the address. If two requests for a new address are concurrent, neither
 * finds a row to lock. The second request waits here, and the condition then refuses this request.
 */
function takeSendSlot({ email, signsUp, now }: NewCode): Fragment {
  return fragment`
    send_slot as (
      insert into sign_in_address as slot (email, sent_at, mailed, asked_at)
      select ${email}, case when is_known then 'epoch' else ${now}::timestamptz end, is_known or purpose <> 'decoy', ${now}
      from verdict where verdict = 'send'
      on conflict on constraint sign_in_address_pkey do update set
        sent_at = greatest(case when slot.sent_at <= ${findLatestStart(now)} then slot.sent_at end, excluded.sent_at),
        asked_at = excluded.asked_at,
        mailed = case when excluded.sent_at = 'epoch' then slot.mailed else excluded.mailed end
        where excluded.sent_at = 'epoch'
          or slot.sent_at <= ${new Date(now.getTime() - SEND_COOLDOWN_SECONDS * 1000)}
          or slot.sent_at > ${findLatestStart(now)}
          -- A sign-up may follow immediately after a sign-in for which no mail was sent.
          or (not slot.mailed and ${signsUp}::boolean)
      returning email
    )`
}

/**
 * Takes a mail from the session of a known client. A session without mails left asks for a code as a stranger, so its
 * own code ends.
 */
function takeMailOfSession(sessionId: string, { email, now }: NewCode): Fragment {
  return fragment`
    taken_mail as (
      update session set code_mails = code_mails + 1, code_sent_at = ${now}
      from verdict where session.id = verdict.session_id and exists (select from send_slot)
    ), ended as (
      delete from sign_in_code
      where email = ${email} and session_id = ${sessionId}::uuid and not exists (select from known)
    ),`
}

/**
 * Renews the time and the attempts of a code. A code of several parts keeps its attempts (SECURITY.md, "Four digits").
 */
function repeatCode({ signUpLimits, now, expiresAt }: NewCode): Fragment {
  return fragment`
    repeated as (
      update sign_in_code as code set sent_at = ${now}, expires_at = ${expiresAt}, repeats = code.repeats + 1,
        attempts = case when code.part_macs is null then 0 else attempts end,
        other_attempts = case when code.part_macs is null then 0 else other_attempts end,
        -- A sign-up that follows a sign-in without a mail takes over the count of that sign-in.
        mails = verdict.mails + (not is_known and not (is_exempt and verdict.mails > 0))::int,
        counted_sign_ups = verdict.counted_sign_ups + ${wasCounted(signUpLimits)}::int
      from send_slot cross join verdict
      where code.id = verdict.own_id and verdict.repeats and attempts < ${MAX_ATTEMPTS}
      returning code.id, code.sealed, code.purpose, code.session_id, code.network, code.mails
    )`
}

function makeCode({ id, macs, seals, randomMac, signUpLimits, now, expiresAt }: NewCode): Fragment {
  return fragment`
    made as (
      insert into sign_in_code as code (id, email, session_id, network, purpose, mac, part_macs, sealed, sealed_id,
        made_at, sent_at, expires_at, mails, counted_sign_ups, ${PROFILE_COLUMNS}, terms_accepted_at)
      select ${id}, send_slot.email, session_id, network, purpose,
        case when parts = 1 then (${macs}::bytea[])[1] else ${randomMac} end,
        case when parts > 1 then (${macs}::bytea[])[1:parts] end,
        (${seals}::text[])[parts], ${id}, ${now}, ${now}, ${expiresAt},
        mails + (not is_known and not (is_exempt and mails > 0))::int,
        ${keptSignUps(signUpLimits)} + ${wasCounted(signUpLimits)}::int,
        ${PROFILE_OF_SIGN_UP}, case when purpose = 'sign_up' then ${now}::timestamptz end
      from send_slot cross join verdict where not exists (select from repeated)
      on conflict on constraint sign_in_code_lane_key do update set
        id = excluded.id, purpose = excluded.purpose, mac = excluded.mac, part_macs = excluded.part_macs,
        sealed = excluded.sealed, sealed_id = excluded.sealed_id, made_at = excluded.made_at,
        sent_at = excluded.sent_at, expires_at = excluded.expires_at, attempts = 0, other_attempts = 0,
        entered_parts = 0, entered_network = null, network_guesses = 0, installation_guesses = 0, repeats = 0,
        mails = excluded.mails, counted_sign_ups = excluded.counted_sign_ups, ${REPLACE_PROFILE},
        terms_accepted_at = excluded.terms_accepted_at
      returning code.id, code.sealed, code.purpose, code.session_id, code.network, code.mails
    )`
}
