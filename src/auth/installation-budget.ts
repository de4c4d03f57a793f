import type { Query, Sql } from '../db/sql.ts'
import { type Fragment, fragment } from '../db/statement.ts'
import type { Buckets } from './budgets.ts'
import { findLatestStart, isWindowRunning } from './clock-tolerance.ts'

const WINDOW_MS = 7 * 86_400_000
const THREE_PARTS_MS = 86_400_000

// If the wrong guesses at any codes reach this many times the budget, strangers' codes get three parts.
// Two counts exist: guesses within the budgets of the address and the network, and guesses outside them.
const ALL_GUESSES_FACTOR = 20

/**
 * The maximum number of guesses of strangers in one process that are reserved but not yet counted for the installation.
 * So each process exceeds the budget by at most this number.
 */
const MAX_UNCOUNTED = 10

/**
 * Returns the number of parts that codes need because of the installation, from the row of `sign_in_installation`.
 * @param isOutside whether the caller has spent the budget of the address or of the network
 */
export function countPartsForInstallation({ isOn, installation }: Buckets, isOutside: Fragment, now: Date): Fragment {
  const isRunning = isWindowRunning(fragment`guesses_since`, WINDOW_MS, now)
  return fragment`
    case when not ${isOn}::boolean then 1
      when three_parts_until > ${now} and three_parts_until <= ${findLatestEnd(now)} then 3
      when ${isOutside} and ${isRunning} and outside_guesses >= ${installation * ALL_GUESSES_FACTOR} then 3
      when ${isRunning} and guesses >= ${installation} then 2
      else 1 end`
}

/**
 * Wrong guesses of strangers. `within` counts the guesses while neither the budget of the address nor that of the
 * network is spent. Of these guesses, `onePart` counts those at codes of one part. `outside` counts all other guesses.
 */
export type Wrong = { onePart: number; within: number; outside: number }

/**
 * Counts wrong guesses for the installation. All requests share the row of `sign_in_installation`, so only wrong
 * guesses write to it. If an operator deleted the row, the count starts again at zero.
 * @returns whether these guesses spent the budget
 */
async function count(sql: Sql, { installation }: Buckets, wrong: Wrong, now: Date): Promise<boolean> {
  const { onePart, within, outside } = wrong
  const isOver = fragment`not coalesce(${isWindowRunning(fragment`stored.guesses_since`, WINDOW_MS, now)}, false)`
  const before = fragment`case when ${isOver} then 0 else stored.all_guesses end`
  const isFlood = fragment`${before} + ${within} >= ${installation * ALL_GUESSES_FACTOR}`
  const [row] = await sql<{ guesses: number }>`
    insert into sign_in_installation as stored (guesses, all_guesses, outside_guesses, guesses_since)
    values (${onePart}, ${within}, ${outside}, ${now})
    on conflict on constraint sign_in_installation_pkey do update set
      guesses = case when ${isOver} then 0 else stored.guesses end + excluded.guesses,
      all_guesses = case when ${isFlood} then 0 else ${before} + excluded.all_guesses end,
      outside_guesses = case when ${isOver} then 0 else stored.outside_guesses end + excluded.outside_guesses,
      guesses_since = case when ${isOver} then ${now} else stored.guesses_since end,
      three_parts_until = case when ${isFlood} then ${new Date(now.getTime() + THREE_PARTS_MS)} else stored.three_parts_until end
    returning guesses`
  return row!.guesses >= installation && row!.guesses - onePart < installation
}

/**
 * Returns SQL assignments that subtract the wrong guesses at a code from the installation's counts. If a code was made
 * before the present window began, its guesses are not subtracted. Otherwise, an attacker could guess wrongly at own
 * codes at the end of one window, and lower the counts of the next window.
 * @param madeAt the time at which the code was made
 * @param guesses the number of guesses
 * @param onePart 1 if the code has one part, otherwise 0
 */
export function giveBackToInstallation(madeAt: Fragment, guesses: Fragment, onePart: Fragment): Fragment {
  return fragment`
    guesses = case when ${madeAt} >= guesses_since then greatest(0, guesses - ${guesses} * ${onePart}) else guesses end,
    all_guesses = case when ${madeAt} >= guesses_since then greatest(0, all_guesses - ${guesses}) else all_guesses end`
}

/**
 * Creates the budget of the installation. It limits the guesses of this process that are reserved but not yet counted.
 * A guess is counted after its comparison, because a right guess does not count. Without the limit, a thousand
 * concurrent guesses could all see the same count.
 */
export function createInstallationBudget(sql: Sql, buckets: Buckets, now: () => Date) {
  let running = 0
  const waiting: (() => void)[] = []

  async function enter(): Promise<void> {
    if (running < MAX_UNCOUNTED) running += 1
    else await new Promise<void>(resolve => waiting.push(resolve))
  }

  function leave(): void {
    const next = waiting.shift()
    if (next) next()
    else running -= 1
  }

  return {
    /**
     * Runs the reservation and the comparison of a guess, and counts the wrong guesses.
     * @param isLimited whether the guess may have to wait for other guesses. Known clients never wait for strangers
     * @param guess returns its result, and the wrong guesses to count
     * @returns the result, and whether the guess spent the budget of the installation
     */
    async run<T>(
      isLimited: boolean,
      guess: () => Promise<{ result: T; wrong: Wrong }>,
    ): Promise<{ result: T; hasSpent: boolean }> {
      if (!buckets.isOn) return { result: (await guess()).result, hasSpent: false }
      if (isLimited) await enter()
      try {
        const { result, wrong } = await guess()
        return { result, hasSpent: wrong.within + wrong.outside > 0 && (await count(sql, buckets, wrong, now())) }
      } finally {
        if (isLimited) leave()
      }
    },
  }
}

/** Returns the spent share of the installation's budget, from 0 to 1, and the number of parts that codes need. */
export async function readInstallation(sql: Query, buckets: Buckets, now: Date) {
  const [row] = await sql<{ share: number; parts: number }>`
    select ${countPartsForInstallation(buckets, fragment`false`, now)} as parts,
      case when ${isWindowRunning(fragment`guesses_since`, WINDOW_MS, now)} then least(1, guesses / ${buckets.installation}::float8) else 0 end
        as share
    from sign_in_installation`
  return row ?? FULL_BUDGET
}

/** The budget of the installation before the first wrong guess. A missing row means the same. */
export const FULL_BUDGET = { share: 0, parts: 1 }

/** Returns the latest `three_parts_until` that a process with a correct clock can have written. */
function findLatestEnd(now: Date): Date {
  return new Date(findLatestStart(now).getTime() + THREE_PARTS_MS)
}
