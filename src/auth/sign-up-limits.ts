import type { SignUpLimits } from '../code-settings.ts'
import type { Sql } from '../db/sql.ts'
import { type Fragment, fragment } from '../db/statement.ts'
import { isWindowRunning } from './clock-tolerance.ts'
import type { NewCode } from './new-code.ts'

const WINDOW_MS = 3_600_000

/** When the limit of the installation is spent, each network still has this number of sign-ups. */
const MIN_PER_NETWORK = 3

/** Whether a request counts as an unfinished sign-up. The first repeat of a code does not count. */
const countsAsSignUp = fragment`(purpose = 'sign_up' and not (repeats and own_repeats = 0))`

/**
 * Returns the steps that count a sign-up in a fixed window of an hour. All are empty if the request does not count.
 * - `installation_count` locks the count of the installation. All statements lock the address, then the installation,
 *   then networks, so no deadlock occurs. If the row is missing, the count is 0.
 * - `network_count` counts the sign-up for its network. It is empty if a limit refuses the sign-up. Only requests with
 *   names are refused. If two sign-ups of a new network are concurrent, the second one waits here for the row.
 */
export function countForNetwork({ network, signsUp, now }: NewCode, limits: SignUpLimits): Fragment {
  const isCounted = fragment`${countsAsSignUp} and coalesce(ends_at <= ${now}, true)`
  const isRunning = isWindowRunning(fragment`sign_ups_since`, WINDOW_MS, now)
  const isNetworkRunning = isWindowRunning(fragment`counts.sign_ups_since`, WINDOW_MS, now)
  const count = fragment`case when ${isNetworkRunning} then counts.sign_ups else 0 end`
  return fragment`
    installation_row as materialized (
      select case when ${isRunning} then sign_ups else 0 end as sign_ups,
        case when ${isRunning} then sign_ups_since else ${now}::timestamptz end as sign_ups_since
      from sign_in_installation where exists (select from request where ${isCounted}) for update
    ), installation_count as materialized (
      select coalesce(sign_ups, 0) as sign_ups, coalesce(sign_ups_since, ${now}) as sign_ups_since
      from request left join installation_row on true where ${isCounted}
    ), network_count as (
      insert into sign_in_network as counts (network, sign_ups, sign_ups_since)
      select ${network}, 1, ${now} from installation_count
      on conflict on constraint sign_in_network_pkey do update set sign_ups = ${count} + 1,
        sign_ups_since = case when ${isNetworkRunning} then counts.sign_ups_since else ${now} end
      where not ${signsUp}::boolean or (${count} < ${limits.network} and (
        ${count} < ${MIN_PER_NETWORK} or (select sign_ups from installation_count) < ${limits.installation}))
      returning network, counts.sign_ups_since
    ),`
}

/**
 * Subtracts a sign-up that `network_count` counted although a concurrent request for the same new address came first.
 * The statement that counts it cannot know this: it waits for the address only after it has counted.
 */
export async function uncountForNetwork(sql: Sql, network: Buffer): Promise<void> {
  await sql`update sign_in_network set sign_ups = greatest(0, sign_ups - 1) where network = ${network}`
}

/** Whether the limits have counted this request. */
export function wasCounted(signUpLimits: SignUpLimits | undefined): Fragment {
  return signUpLimits ? fragment`exists (select from network_count)` : fragment`false`
}

/**
 * Returns the number of sign-ups of the requester's previous code that its row keeps: all, if they belong to the
 * present windows of both limits, and otherwise none.
 */
export function keptSignUps(signUpLimits: SignUpLimits | undefined): Fragment {
  if (!signUpLimits) return fragment`0`
  return fragment`
    case when own_made_at >= (select sign_ups_since from installation_count)
      and own_made_at >= (select sign_ups_since from network_count) then counted_sign_ups else 0 end`
}

/** Whether a limit refuses a sign-up. */
export const IS_OVER_SIGN_UP_LIMIT = fragment`
  exists (select from installation_count) and not exists (select from network_count)`

/**
 * Returns the earliest time at which a refused sign-up may be tried again. If the network has used up its limit, this
 * is the end of the network's window. Otherwise, it is the end of the network's window or of the installation's window,
 * whichever comes first.
 */
export function computeSignUpLimitEnd({ network, now }: NewCode, limits: SignUpLimits): Fragment {
  return fragment`
    (select least(own.sign_ups_since,
          case when own.sign_ups >= ${limits.network} then null else installation_count.sign_ups_since end)
        + make_interval(secs => ${WINDOW_MS / 1000})
      from installation_count left join sign_in_network as own
        on own.network = ${network} and ${isWindowRunning(fragment`own.sign_ups_since`, WINDOW_MS, now)})`
}

/** The step that counts a sign-up for the installation. */
export const COUNT_FOR_INSTALLATION = fragment`
  counted_installation as (
    insert into sign_in_installation (sign_ups, sign_ups_since)
    select sign_ups + 1, sign_ups_since from installation_count where exists (select from send_slot)
    on conflict on constraint sign_in_installation_pkey do update
      set sign_ups = excluded.sign_ups, sign_ups_since = excluded.sign_ups_since
  ),`
