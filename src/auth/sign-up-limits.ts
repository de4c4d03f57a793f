import type { Sql } from '../db/sql.ts'
import { type Fragment, fragment } from '../db/statement.ts'
import { isWindowRunning } from './clock-tolerance.ts'
import type { NewCode } from './new-code.ts'

const WINDOW_MS = 3_600_000

/** When the limit of the installation is spent, each network still has this number of sign-ups. */
const MIN_PER_NETWORK = 3

const NO_LIMITS = { network: 0, installation: 0 }

/** Whether a request counts as an unfinished sign-up. The first repeat of a code does not count. */
const countsAsSignUp = fragment`(purpose = 'sign_up' and not (repeats and own_repeats = 0))`

/**
 * Returns the steps that count a sign-up in a fixed window of an hour. Both are empty if the request does not count.
 * - `installation_count` locks the count of the installation. All statements lock the address, then the installation,
 *   then networks, so no deadlock occurs. If the row is missing, the count is 0.
 * - `network_count` counts the sign-up for its network. It is empty if a limit refuses the sign-up. Only requests with
 *   names are refused. If two sign-ups of a new network are concurrent, the second one waits here for the row.
 */
export function countForNetwork({ network, signsUp, signUpLimits, now }: NewCode): Fragment {
  const limits = signUpLimits ?? NO_LIMITS
  const isCounted = fragment`
    (select count(*) from request
      where ${signUpLimits !== undefined}::boolean and ${countsAsSignUp}
        and coalesce(ends_at <= ${now}, true)) > 0`
  const count = fragment`case when ${isWindowRunning(fragment`counts.sign_ups_since`, WINDOW_MS, now)} then counts.sign_ups else 0 end`
  return fragment`
    installation_row as materialized (
      select case when ${isWindowRunning(fragment`sign_ups_since`, WINDOW_MS, now)} then sign_ups else 0 end as sign_ups,
        case when ${isWindowRunning(fragment`sign_ups_since`, WINDOW_MS, now)} then sign_ups_since else ${now}::timestamptz end as sign_ups_since
      from sign_in_installation where ${isCounted} for update
    ), installation_count as materialized (
      select * from installation_row
      union all
      select 0, ${now} where ${isCounted} and not exists (select from installation_row)
    ), network_count as (
      insert into sign_in_network as counts (network, sign_ups, sign_ups_since)
      select ${network}, 1, ${now} from installation_count
      on conflict on constraint sign_in_network_pkey do update set sign_ups = ${count} + 1,
        sign_ups_since = case when ${isWindowRunning(fragment`counts.sign_ups_since`, WINDOW_MS, now)} then counts.sign_ups_since else ${now} end
      where not ${signsUp}::boolean or (${count} < ${limits.network} and (
        ${count} < ${MIN_PER_NETWORK} or (select sign_ups from installation_count) < ${limits.installation}))
      returning network, counts.sign_ups_since
    )`
}

/**
 * Subtracts a sign-up that `network_count` counted although a concurrent request for the same new address came first.
 * The statement that counts it cannot know this: it waits for the address only after it has counted.
 */
export async function uncountForNetwork(sql: Sql, network: Buffer): Promise<void> {
  await sql`update sign_in_network set sign_ups = greatest(0, sign_ups - 1) where network = ${network}`
}

/**
 * The number of sign-ups that the mail of this request adds to the row of its code. A success gives back the sign-ups
 * in this row. So the row counts a mail only if the limits have counted the mail.
 */
export const countedSignUps = fragment`(select count(*) from network_count)::int`

/** Returns whether all counted mails of the requester's previous code belong to the present windows of both limits. */
export const wasCountedInWindows = fragment`
  coalesce(own_made_at >= (select sign_ups_since from installation_count)
    and own_made_at >= (select sign_ups_since from network_count), false)`

/** Whether a limit refuses a sign-up. */
export const isOverSignUpLimit = fragment`
  exists (select from installation_count) and not exists (select from network_count)`

/**
 * Returns the earliest time at which a refused sign-up may be tried again. If the network has used up its limit, this
 * is the end of the network's window. Otherwise, it is the end of the network's window or of the installation's window,
 * whichever comes first.
 */
export function computeSignUpLimitEnd({ network, signUpLimits, now }: NewCode): Fragment {
  const limits = signUpLimits ?? NO_LIMITS
  return fragment`
    (select least(own.sign_ups_since,
          case when own.sign_ups >= ${limits.network} then null else installation_count.sign_ups_since end)
        + make_interval(secs => ${WINDOW_MS / 1000})
      from installation_count left join sign_in_network as own
        on own.network = ${network} and ${isWindowRunning(fragment`own.sign_ups_since`, WINDOW_MS, now)})`
}

/** The step that counts a sign-up for the installation. */
export const countForInstallation = fragment`
  counted_installation as (
    insert into sign_in_installation (sign_ups, sign_ups_since)
    select sign_ups + 1, sign_ups_since from installation_count where exists (select from send_slot)
    on conflict on constraint sign_in_installation_pkey do update
      set sign_ups = excluded.sign_ups, sign_ups_since = excluded.sign_ups_since
  )`
