import { type Fragment, fragment, NOTHING } from '../db/statement.ts'
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
import { countForNetwork, IS_OVER_SIGN_UP_LIMIT } from './sign-up-limits.ts'

/**
 * Returns the steps of the statement of `issueCode` that decide what to do. Each step is a subquery:
 * - `address` locks the row of the address. Concurrent requests for the address, and guesses at its codes, wait here.
 * - `known` locks the session of a known client that has mails left. A stranger's statement does not have this step,
 *   because a step costs time even if it finds no row.
 * - `request` describes the request: the requester, the purpose, the wait, and the number of parts that the code needs.
 * - `installation_count` and `network_count` count a sign-up for the limits.
 * - `verdict` decides: `registered`, `wait`, `limit` or `send`.
 *
 * If a concurrent request changed a row after the snapshot of this statement, `for update` returns the row as it is
 * now. The columns of `own` may be outdated. In this case the concurrent request has just sent a code, and the wait
 * refuses this request.
 */
export function decideRequest(code: NewCode): Fragment {
  const { email, sessionId, buckets, signUpLimits, now } = code
  return fragment`
    address as materialized (
      select sent_at, mailed, ${describeBucket(buckets.address, now)}
      from sign_in_address where email = ${email} for update
    ), ${sessionId === undefined ? NOTHING : lockSession(sessionId)} request as materialized (
      ${describeRequest(code)}
    ), ${signUpLimits ? countForNetwork(code, signUpLimits) : NOTHING} verdict as materialized (
      select request.*, case
        when purpose = 'registered' then 'registered'
        when ends_at > ${now} then 'wait'
        when ${signUpLimits ? IS_OVER_SIGN_UP_LIMIT : fragment`false`} then 'limit'
        else 'send' end as verdict
      from request
    )`
}

/**
 * Returns the step `known`. It locks the session of a known client, if the session has mails left. The row of the
 * address is locked first.
 */
function lockSession(sessionId: string): Fragment {
  return fragment`
    known as materialized (
      select id, code_sent_at from session
      where id = ${sessionId}::uuid and code_mails < ${MAX_KNOWN_CLIENT_MAILS} and (select count(*) from address) >= 0
      for update
    ),`
}

/**
 * Returns the subquery `request`. Its tables are joined, and each has at most one row. PostgreSQL prepares a join
 * faster than a step or a nested subquery.
 * - `caller` is the requester: a known client or a network.
 * - `own` is the row of the requester's last code.
 */
function describeRequest(code: NewCode): Fragment {
  const { email, sessionId, network, buckets, now } = code
  return fragment`
    select caller.*, purpose.*, due.parts, ${isRepeat(now)} as repeats,
      ${computeWaitEnd(buckets.isOn, now)} as ends_at, ${isExempt} as is_exempt
    from (${sessionId === undefined ? describeStranger(network) : describeKnownClient(network)}) as caller
      left join address on true
      left join (${sessionId === undefined ? findCodeOfNetwork(code) : findCodeOfSession(code)}) as own on true
      left join app_user on app_user.email = ${email}
      left join (select ${describeBucket(buckets.network, now)} from sign_in_network where network = ${network}) as bucket
        on true
      cross join lateral (${describePurpose(code)}) as purpose
      cross join lateral (${countDueParts(buckets, now)}) as due`
}

function describeStranger(network: Buffer): Fragment {
  return fragment`
    select false as is_known, null::uuid as session_id, null::timestamptz as code_sent_at, ${network}::bytea as network`
}

/** A known client without mails left is a stranger. */
function describeKnownClient(network: Buffer): Fragment {
  return fragment`
    select known.id is not null as is_known, known.id as session_id, known.code_sent_at,
      case when known.id is null then ${network}::bytea end as network
    from (select) as one left join known on true`
}

function findCodeOfNetwork({ email, network }: NewCode): Fragment {
  return fragment`select * from sign_in_code where email = ${email} and session_id is null and network = ${network}`
}

function findCodeOfSession(code: NewCode): Fragment {
  return fragment`
    select * from sign_in_code
    where email = ${code.email} and session_id = (select id from known) and network is null
    union all
    select * from (${findCodeOfNetwork(code)}) as of_network where not exists (select from known)`
}

/** Returns a subquery with the purpose of the request, its profile, and what it takes from the row `own`. */
function describePurpose({ signsUp, profile, now }: NewCode): Fragment {
  const isPending = isWindowRunning(fragment`own.sent_at`, PENDING_SIGN_UP_MS, now)
  const isRegistered = fragment`app_user.id is not null`
  return fragment`
    select ${signsUp}::boolean as signs_up,
      coalesce(own.mails * ${isWindowRunning(fragment`own.sent_at`, MAILS_KEPT_MS, now)}::int, 0) as mails,
      own.id as own_id, own.repeats as own_repeats, own.made_at as own_made_at,
      case when ${isPending} then own.counted_sign_ups else 0 end as counted_sign_ups,
      ${resumeProfile(profile)},
      case
        when ${signsUp}::boolean and ${isRegistered} then 'registered'
        when ${isRegistered} then 'sign_in'
        -- A request without a profile resumes the pending sign-up of the caller's network.
        when ${signsUp}::boolean or (own.purpose = 'sign_up' and ${isPending}) then 'sign_up'
        else 'decoy'
      end as purpose`
}

/**
 * Returns a subquery with the number of parts that the code needs: the largest number over the three budgets. An
 * address or a network without a row has its whole budget.
 */
function countDueParts(buckets: Buckets, now: Date): Fragment {
  const byAddress = countPartsForBucket(buckets.address, fragment`address.remaining`, fragment`address.window_guesses`)
  const byNetwork = countPartsForBucket(buckets.network, fragment`bucket.remaining`, fragment`bucket.window_guesses`)
  const isOutside = fragment`(by_address > 1 or by_network > 1)`
  return fragment`
    select case when caller.is_known then 1 else greatest(by_address, by_network,
        (select ${countPartsForInstallation(buckets, isOutside, now)} from sign_in_installation)) end as parts
    from (select ${byAddress} as by_address, ${byNetwork} as by_network) as budgets`
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
const isExempt = fragment`coalesce(signs_up and not address.mailed, false)`

/** Returns the end of the requester's wait, or null if there is no wait. Ignores mails more than 60 s in the future. */
function computeWaitEnd(hasLongWaits: boolean, now: Date): Fragment {
  const latest = findLatestStart(now)
  return fragment`
    case
      when is_known then case when code_sent_at <= ${latest} then code_sent_at end
        + make_interval(secs => ${SEND_COOLDOWN_SECONDS})
      when not ${isExempt} then case when address.sent_at <= ${latest} then address.sent_at end
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
