import { randomInt } from 'node:crypto'
import type { Sql } from '../db/sql.ts'
import { type Fragment, fragment } from '../db/statement.ts'
import {
  type Buckets,
  countPartsForBucket,
  describeBucket,
  isBucketWindowRunning,
  readFullAt,
  takeFrom,
} from './budgets.ts'
import { findLatestStart, isCodeLive } from './clock-tolerance.ts'
import { MAX_ATTEMPTS, MAX_OTHER_ATTEMPTS } from './code-limits.ts'
import { countPartsForInstallation } from './installation-budget.ts'
import type { Requester } from './new-code.ts'

// The number of rows in the table `missed_guess` (migrations/0001_accounts.sql). If there is no code to compare,
// `reserveGuess` updates a random row of this table. Concurrent guesses wait for each other only if they update the
// same row.
const MISSED_GUESS_SLOTS = 64

/** A code with which a guess is compared, and for which one attempt has been reserved. */
export type ReservedAttempt = {
  id: string
  purpose: 'sign_up' | 'sign_in' | 'decoy'
  /** The keyed hash of each part. */
  macs: Buffer[]
  /** The number of parts that the caller's network has entered. */
  entered: number
  /** Whether the caller requested this code. */
  is_own: boolean
  /** Whether the guess counts in the budgets. */
  is_counted: boolean
  /** The guesses that the attempt took from the budgets: 0 if the budget was empty. */
  taken_address: number
  taken_network: number
  /** Whether the guess counts for the installation: the address and the network were within their budgets. */
  in_installation: boolean
}

/**
 * Reserves one attempt at each code with which a guess is compared. These codes are the live code of the caller, and
 * the live code that was mailed last to another requester. One statement counts the attempts, takes the guesses from
 * the budgets, and commits. `guess` compares the codes after the commit. At the time of the statement it is unknown
 * whether the typed code is right, so each attempt counts as a wrong guess. Afterwards, a right guess is given back.
 *
 * A code with fewer parts than are due cannot open a session. If there is no code, the statement updates a row of
 * `missed_guess` instead. Both cases take the same time, so the duration does not reveal whether there is a code.
 * @returns the attempts. The caller's own code comes first
 */
export async function reserveGuess(
  sql: Sql,
  buckets: Buckets,
  caller: Requester,
  now: Date,
): Promise<ReservedAttempt[]> {
  return sql<ReservedAttempt>`
    with ${lockCodes(caller, buckets, now)}, ${judgeCodes(caller, buckets, now)}, ${countGuesses(caller, buckets, now)}
    select guess.id, purpose, macs, entered, is_own, is_counted, taken_address, taken_network, in_installation
    from guess join attempt using (id)
    order by is_own desc`
}

/**
 * Returns the steps that lock the address, the network, and the codes to compare. The lock on the address comes first,
 * so all statements on the codes of one address run one after the other. If a concurrent statement changed a row after
 * our snapshot, `for update` returns the row as it is now.
 */
function lockCodes({ email, sessionId, network }: Requester, buckets: Buckets, now: Date): Fragment {
  const isLive = fragment`
    email = (select email from address) and ${isCodeLive(now)} and attempts < ${MAX_ATTEMPTS}`
  return fragment`
    address as materialized (
      select email, ${describeBucket(buckets.address, now)} from sign_in_address where email = ${email} for update
    ), own as materialized (
      -- A row without a requester belongs to a process of the previous version. Callers of every network may use it.
      select id from sign_in_code
      where ${isLive} and (session_id = ${sessionId}::uuid or session_id is null and (
        network is null or network = ${network} and ${sessionId}::uuid is null))
      order by session_id is null and network is null
      limit 1
    ), other as materialized (
      select id from sign_in_code
      where ${isLive} and id <> all (array(select id from own))
        and (purpose <> 'sign_up' or not exists (select from own))
      -- A code that a process with a fast clock mailed is not the newest.
      order by sent_at > ${findLatestStart(now)}, sent_at desc, id
      limit 1
    ), bucket as materialized (
      select ${describeBucket(buckets.network, now)} from sign_in_network
      where network = ${network} and (select count(*) from address) > 0
      for update
    ), met as materialized (
      select id, session_id, purpose, coalesce(part_macs, array[mac]) as macs,
        case when entered_network = ${network} then entered_parts else 0 end as entered,
        id = any (array(select id from own)) as is_own, session_id is null and network is null as is_shared
      from sign_in_code
      where id = any (array(select id from own union all select id from other))
        and (select count(*) from bucket) >= 0 and ${isCodeLive(now)} and attempts < ${MAX_ATTEMPTS}
        and (id = any (array(select id from own)) or session_id is null and network is null
          or other_attempts < ${MAX_OTHER_ATTEMPTS})
      for update
    )`
}

/**
 * Returns the steps that decide which codes have enough parts, and what each guess takes from the budgets. The guess at
 * the caller's own code comes first, so the guess at the other code can take only the guesses that are left.
 */
function judgeCodes({ sessionId }: Requester, buckets: Buckets, now: Date): Fragment {
  const guess = (standing: Fragment) => fragment`
    select met.*, ${buckets.isOn}::boolean and not is_known_own as is_counted,
      (address_left >= 1 and not is_known_own)::int as taken_address, (network_left >= 1 and not is_known_own)::int as taken_network,
      not is_known_own and address_parts = 1 and network_parts = 1 as in_installation
    from met cross join ${standing} as standing
      cross join lateral (select is_own and session_id = ${sessionId}::uuid is true as is_known_own) as known
      cross join lateral (
        select ${countPartsForBucket(buckets.address, fragment`address_left`, fragment`address_window`)} as address_parts,
          ${countPartsForBucket(buckets.network, fragment`network_left`, fragment`network_window`)} as network_parts) as due
    where is_shared or is_known_own
      or cardinality(macs) >= greatest(address_parts, network_parts,
        case when address_parts > 1 or network_parts > 1 then outside_parts else within_parts end)`
  const first = fragment`first_standing`
  const second = fragment`second_standing`
  return fragment`
    first_standing as materialized (
      select coalesce((select remaining from address), ${buckets.address.capacity}) as address_left,
        coalesce((select window_guesses from address), 0) as address_window,
        coalesce((select remaining from bucket), ${buckets.network.capacity}) as network_left,
        coalesce((select window_guesses from bucket), 0) as network_window,
        coalesce((select ${countPartsForInstallation(buckets, fragment`false`, now)} from sign_in_installation), 1) as within_parts,
        coalesce((select ${countPartsForInstallation(buckets, fragment`true`, now)} from sign_in_installation), 1) as outside_parts
    ), own_guess as materialized (
      select * from (${guess(first)}) as guess where is_own
    ), second_standing as materialized (
      select address_left - coalesce((select taken_address from own_guess), 0) as address_left,
        network_left - coalesce((select taken_network from own_guess), 0) as network_left,
        address_window + coalesce((select is_counted::int from own_guess), 0) as address_window,
        network_window + coalesce((select is_counted::int from own_guess), 0) as network_window, within_parts, outside_parts
      from first_standing
    ), guess as materialized (
      select * from own_guess union all select * from (${guess(second)}) as guess where not is_own
    ), total as materialized (
      select coalesce(sum(taken_address), 0)::int as address, coalesce(sum(taken_network), 0)::int as network,
        count(*)::int as guesses
      from guess where is_counted
    )`
}

/** Returns the steps that count the guesses. Only the step `attempt` returns rows. */
function countGuesses({ email, network }: Requester, buckets: Buckets, now: Date): Fragment {
  const isRunning = isBucketWindowRunning(fragment`stored.guesses_since`, now)
  const fullAt = (row: Fragment) => readFullAt(fragment`${row}.guesses_full_at`, fragment`${row}.guesses_since`, now)
  return fragment`
    address_taken as (
      update sign_in_address set guesses = address.window_guesses + total.guesses, guesses_since = address.window_start,
        guesses_full_at = ${takeFrom(buckets.address, fullAt(fragment`sign_in_address`), fragment`total.address`, now)}
      from address, total where sign_in_address.email = ${email} and total.guesses > 0
    ), network_taken as (
      insert into sign_in_network as stored (network, guesses, guesses_since, guesses_full_at)
      select ${network}, total.guesses, ${now},
        ${takeFrom(buckets.network, fragment`null::timestamptz`, fragment`total.network`, now)}
      from total where total.guesses > 0
      on conflict on constraint sign_in_network_pkey do update set
        guesses = case when ${isRunning} then stored.guesses else 0 end + excluded.guesses,
        guesses_since = case when ${isRunning} then stored.guesses_since else ${now} end,
        guesses_full_at = ${takeFrom(buckets.network, fullAt(fragment`stored`), fragment`(select network from total)`, now)}
    ), attempt as (
      update sign_in_code as code set attempts = attempts + 1,
        other_attempts = other_attempts + (not is_own and not is_shared)::int,
        network_guesses = network_guesses + case when is_own and is_counted and not is_shared then taken_network else 0 end,
        installation_guesses = installation_guesses + (is_own and is_counted and not is_shared and in_installation)::int
      from guess where code.id = guess.id
      returning code.id
    ), missed as (
      update missed_guess set guesses = guesses + 1
      where slot = ${randomInt(MISSED_GUESS_SLOTS)} and not exists (select from guess)
    )`
}
