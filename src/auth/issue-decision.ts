import { type Fragment, fragment } from '../db/statement.ts'
import { type Buckets, countPartsForBucket, describeBucket } from './budgets.ts'
import { findLatestStart, isWindowRunning } from './clock-tolerance.ts'
import {
  MAILS_BEFORE_BACKOFF,
  MAILS_KEPT_MS,
  MAX_ATTEMPTS,
  MAX_DOUBLINGS,
  MAX_KNOWN_CLIENT_MAILS,
  MAX_REPEAT_AGE_MS,
  MAX_WAIT_SECONDS,
  PENDING_SIGN_UP_MS,
  SEND_COOLDOWN_SECONDS,
} from './code-limits.ts'
import { countPartsForInstallation } from './installation-budget.ts'
import type { NewCode } from './new-code.ts'
import { HAS_SAME_PROFILE, resumeProfile } from './pending-profile.ts'
import { countForNetwork, isOverSignUpLimit } from './sign-up-limits.ts'

/**
 * Returns the steps of the statement of `issueCode` that decide what to do. Each step is a subquery:
 * - `address` locks the row of the address. Concurrent requests for the address, and guesses at its codes, wait here.
 * - `known` locks the session of a known client that has mails left. It is empty for a stranger.
 * - `own` is the row of the requester's last code.
 * - `request` adds the purpose, the wait, and the number of parts that the code needs.
 * - `installation_count` and `network_count` count a sign-up for the limits.
 * - `verdict` decides: `registered`, `wait`, `limit` or `send`.
 *
 * If a concurrent request changed a row after the snapshot of this statement, `for update` returns the row as it is
 * now. The columns that `own` reads may be outdated. In this case the concurrent request has just sent a code, and the
 * wait refuses this request.
 */
export function decideRequest(code: NewCode): Fragment {
  const { email, sessionId, network, buckets, now } = code
  return fragment`
    address as materialized (
      select sent_at, mailed, ${describeBucket(buckets.address, now)}
      from sign_in_address where email = ${email} for update
    ), known as materialized (${sessionId === undefined ? NO_SESSION : lockSession(sessionId)}), own as materialized (
      select * from sign_in_code
      where email = ${email} and session_id = (select id from known) and network is null
      union all
      select * from sign_in_code
      where email = ${email} and session_id is null and network = ${network} and not exists (select from known)
    ), ${describeRequest(code)}, ${countForNetwork(code)}, verdict as materialized (
      select request.*, case
        when purpose = 'registered' then 'registered'
        when ends_at > ${now} then 'wait'
        when ${isOverSignUpLimit} then 'limit'
        else 'send' end as verdict
      from request
    )`
}

// A stranger's statement is shorter: a step costs time even if it finds no row.
const NO_SESSION = fragment`select null::uuid as id, null::timestamptz as code_sent_at where false`

/**
 * Returns a subquery that locks the session of a known client, if the session has mails left. The row of the address is
 * locked first.
 */
function lockSession(sessionId: string): Fragment {
  return fragment`
    select id, code_sent_at from session
    where id = ${sessionId}::uuid and code_mails < ${MAX_KNOWN_CLIENT_MAILS} and (select count(*) from address) >= 0
    for update`
}

/** Returns the steps `caller`, `purpose` and `request`. */
function describeRequest({ email, network, signsUp, profile, buckets, now }: NewCode): Fragment {
  const isPending = isWindowRunning(fragment`own.sent_at`, PENDING_SIGN_UP_MS, now)
  return fragment`
    caller as materialized (
      select ${signsUp}::boolean as signs_up, exists (select from app_user where email = ${email}) as is_registered,
        exists (select from known) as is_known, (select id from known) as session_id,
        case when not exists (select from known) then ${network}::bytea end as network
    ), purpose as materialized (
      -- A request without a profile resumes the pending sign-up of the caller's network.
      select caller.*, coalesce(own.mails * ${isWindowRunning(fragment`own.sent_at`, MAILS_KEPT_MS, now)}::int, 0) as mails,
        own.id as own_id, own.repeats as own_repeats, own.made_at as own_made_at,
        case when ${isPending} then own.counted_sign_ups else 0 end as counted_sign_ups,
        ${resumeProfile(profile)},
        case
          when signs_up and is_registered then 'registered'
          when is_registered then 'sign_in'
          when signs_up or (own.purpose = 'sign_up' and ${isPending}) then 'sign_up'
          else 'decoy'
        end as purpose
      from caller left join own on true
    ), due as materialized (
      select ${countDueParts(network, buckets, now)} as parts
    ), request as materialized (
      select purpose.*, parts, ${isRepeat(now)} as repeats, ${computeWaitEnd(buckets.isOn, now)} as ends_at, ${isExempt} as is_exempt
      from purpose cross join due left join own on true
    )`
}

/** Returns the number of parts that the code needs: the largest number over the three budgets. */
function countDueParts(network: Buffer, buckets: Buckets, now: Date): Fragment {
  const parts = (bucket: Buckets['address']) =>
    countPartsForBucket(bucket, fragment`remaining`, fragment`window_guesses`)
  const isOutside = fragment`(by_address > 1 or by_network > 1)`
  return fragment`
    case when exists (select from known) then 1 else (
      select greatest(by_address, by_network,
        (select ${countPartsForInstallation(buckets, isOutside, now)} from sign_in_installation))
      from (select
        coalesce((select ${parts(buckets.address)} from address), 1) as by_address,
        coalesce((select ${parts(buckets.network)} from (
          select ${describeBucket(buckets.network, now)} from sign_in_network where network = ${network}) as bucket), 1)
          as by_network) as budgets
    ) end`
}

/** Returns whether the request repeats the requester's code instead of making a new one. */
function isRepeat(now: Date): Fragment {
  return fragment`
    coalesce(own.sealed_id = own.id and own.sent_at <= ${findLatestStart(now)}
      and own.made_at > ${new Date(now.getTime() - MAX_REPEAT_AGE_MS)}
      and own.expires_at > ${now} and own.attempts < ${MAX_ATTEMPTS}
      and coalesce(cardinality(own.part_macs), 1) = parts and own.purpose = purpose.purpose
      and (purpose.purpose <> 'sign_up' or ${HAS_SAME_PROFILE}), false)`
}

// A sign-up may follow immediately after a sign-in for which no mail was sent.
const isExempt = fragment`coalesce(signs_up and not (select mailed from address), false)`

/** Returns the end of the requester's wait, or null if there is no wait. Ignores mails more than 60 s in the future. */
function computeWaitEnd(hasLongWaits: boolean, now: Date): Fragment {
  const latest = findLatestStart(now)
  return fragment`
    case
      when is_known then (select code_sent_at from known where code_sent_at <= ${latest}) + make_interval(secs => ${SEND_COOLDOWN_SECONDS})
      when not ${isExempt} then (select sent_at from address where sent_at <= ${latest})
        + make_interval(secs => ${computeWaitSeconds(hasLongWaits, fragment`purpose.mails`)})
    end`
}

/** Returns the seconds that a network must wait after a mail to a stranger. @param mails the mails to this network */
export function computeWaitSeconds(hasLongWaits: boolean, mails: Fragment): Fragment {
  return fragment`
    case when ${hasLongWaits}::boolean and ${mails} >= ${MAILS_BEFORE_BACKOFF}
      then least(${MAX_WAIT_SECONDS}, ${SEND_COOLDOWN_SECONDS} * 2 ^ least(
        ${MAX_DOUBLINGS}, ${mails} - ${MAILS_BEFORE_BACKOFF - 1}))
      else ${SEND_COOLDOWN_SECONDS} end`
}
