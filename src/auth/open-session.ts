import type { Sql } from '../db/sql.ts'
import { type Fragment, fragment } from '../db/statement.ts'
import type { Language } from '../language.ts'
import { type Buckets, giveBack } from './budgets.ts'
import { MAX_ATTEMPTS } from './code-limits.ts'
import { type Refund, refundAddress } from './give-back.ts'
import { giveBackToInstallation } from './installation-budget.ts'
import type { Requester } from './new-code.ts'
import { DELETE_PROFILE, PROFILE_COLUMNS } from './pending-profile.ts'
import type { ReservedAttempt } from './reserve-guess.ts'
import { computeSessionEnd } from './session-tokens.ts'

/** A right guess: the code, and the attempts to give back. */
export type Success = { code: ReservedAttempt; refund: Refund }

/** The request for a session: the caller, the code, the language, and the length of the session in days. */
type Opening = { caller: Requester; success: Success; language: Language | undefined; sessionDays: number }

export type OpenedSession = { userId: number; sessionId: string; isNewUser: boolean }

/**
 * Uses up a right code and opens a session. If the code belongs to a sign-up, `openSession` creates the account. If the
 * code belongs to a sign-in and a language is given, `openSession` stores the language in the account. One statement
 * makes all these changes, so either all changes take effect or none.
 *
 * If several requests with the code run concurrently, only one of these requests ends the code. So only this request
 * opens a session.
 *
 * Another sign-up may have created the account already. If the snapshot of this statement contains the account, the
 * subquery `existing` finds it. Otherwise the other sign-up ended this code, so `spent` is empty.
 * @returns undefined if another request ended the code, or if a new code replaced this code after the comparison. In
 *   both cases, no row has the id of the code any more
 */
export async function openSession(
  sql: Sql,
  buckets: Buckets,
  { caller, success, language, sessionDays }: Opening,
  now: Date,
): Promise<OpenedSession | undefined> {
  const [session] = await sql<{ id: string; user_id: number; is_new_user: boolean }>`
    with ${spendSteps(buckets, caller, success, now)}, created as (
      insert into app_user (email, ${PROFILE_COLUMNS}, locale, terms_accepted_at, created_at, updated_at)
      select email, ${PROFILE_COLUMNS}, ${language ?? 'fr'}, ${now}, ${now}, ${now}
      from spent where purpose = 'sign_up'
      on conflict on constraint app_user_email_key do nothing
      returning id
    ), existing as (
      update app_user set locale = coalesce(${language}, locale),
        updated_at = case when locale = coalesce(${language}, locale) then updated_at else ${now} end
      from spent where app_user.email = spent.email
      returning app_user.id
    ), account as (
      select id, true as is_new from created union all select id, false from existing
    )
    insert into session (user_id, created_at, expires_at, issued_at)
    select id, ${now}, ${computeSessionEnd(now, sessionDays)}, ${now} from account
    returning id, user_id, (select is_new from account) as is_new_user`
  return session && { userId: session.user_id, sessionId: session.id, isNewUser: session.is_new_user }
}

/** Uses up a right code without opening a session. @returns whether this request ended the code */
export async function spend(
  sql: Sql,
  buckets: Buckets,
  { caller, success }: { caller: Requester; success: Success },
  now: Date,
): Promise<boolean> {
  const spent = await sql`with ${spendSteps(buckets, caller, success, now)} select id from spent`
  return spent.length > 0
}

/**
 * Returns the steps that use up a code. The step `spent` contains the code, unless another request ended it. A success
 * ends all codes of the address, but keeps the counts of mails and guesses, with these exceptions:
 * - The right guess is given back.
 * - The wrong guesses at the caller's own code that came from its network are given back to the network and the
 *   installation.
 * - The count of mails to the caller's network starts again at zero.
 * - The sign-up is finished, so it does not count in the limits any more.
 */
function spendSteps(buckets: Buckets, caller: Requester, { code, refund }: Success, now: Date): Fragment {
  // The right guess is not among the guesses that the installation has counted.
  const uncounted = Number(code.is_own && code.is_counted && code.in_installation)
  const ownTaken = code.is_own && code.is_counted ? code.taken_network : 0
  const earlier = fragment`greatest(0, own_guesses - ${ownTaken}::int)`
  const giveBackEarlier = fragment`${earlier} * (spent.made_at >= guesses_since)::int`
  return fragment`
    address as materialized (
      select email from sign_in_address where email = ${caller.email} for update
    ), spent as materialized (
      select id, email, purpose, network, ${PROFILE_COLUMNS}, counted_sign_ups, made_at,
        case when ${code.is_own}::boolean then network_guesses else 0 end as own_guesses,
        case when ${code.is_own}::boolean then greatest(0, installation_guesses - ${uncounted}) else 0 end
          as installation_guesses,
        (part_macs is null)::int as one_part
      from sign_in_code
      where id = ${code.id} and email = (select email from address) and purpose <> 'decoy'
      for update
    ), installation as materialized (
      select id from sign_in_installation
      where exists (select from spent where installation_guesses > 0 or counted_sign_ups > 0)
      for update
    ), networks as materialized (
      select sign_in_network.network from sign_in_network
      where network in (${caller.network}, (select network from spent)) and (select count(*) from installation) >= 0
        and exists (select from spent)
      order by network
      for update
    ), ${refundAddress(caller, buckets, refund, fragment`exists (select from spent)`)}, refunded_installation as (
      update sign_in_installation set sign_ups = ${giveBackSignUps},
        ${giveBackToInstallation(fragment`spent.made_at`, fragment`spent.installation_guesses`, fragment`spent.one_part`)}
      from installation, spent where sign_in_installation.id = installation.id
    ), refunded_networks as (
      update sign_in_network set
        ${giveBack(
          buckets.network,
          fragment`case when sign_in_network.network = ${caller.network} then ${refund.network}::int + ${earlier} else 0 end`,
          fragment`case when sign_in_network.network = ${caller.network} then ${refund.guesses}::int + ${giveBackEarlier} else 0 end`,
        )},
        sign_ups = case when sign_in_network.network = spent.network then ${giveBackSignUps} else sign_ups end
      from networks, spent where sign_in_network.network = networks.network
    ), ended as (
      update sign_in_code as code set id = gen_random_uuid(), purpose = 'decoy', attempts = ${MAX_ATTEMPTS},
        expires_at = least(expires_at, ${now}), sealed = null, sealed_id = null, part_macs = null, entered_parts = 0,
        entered_network = null, network_guesses = 0, installation_guesses = 0, counted_sign_ups = 0, repeats = 0,
        ${DELETE_PROFILE},
        mails = case when code.network = ${caller.network} then 0 else mails end
      from spent
      where code.email = spent.email and (code.expires_at > ${now} or code.network = ${caller.network}
        or code.id = spent.id)
    )`
}

// A code that was made before the present window began may have been counted in an earlier window.
const giveBackSignUps = fragment`
  case when spent.made_at >= sign_ups_since then greatest(0, sign_ups - spent.counted_sign_ups) else sign_ups end`
