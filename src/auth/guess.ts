import type { Sql } from '../db/sql.ts'
import type { Keys } from '../keys.ts'
import type { Buckets } from './budgets.ts'
import { type Comparison, comparePart } from './code-parts.ts'
import { enterPart } from './enter-part.ts'
import { computeRefund } from './give-back.ts'
import { createInstallationBudget } from './installation-budget.ts'
import type { Requester } from './new-code.ts'
import type { Success } from './open-session.ts'
import { type ReservedAttempt, reserveGuess } from './reserve-guess.ts'

/**
 * The result of a guess. `continue`: the part is right, and the part with the index `nextPart` is due.
 * `hasSpentBudget`: the guess spent the budget of the installation.
 */
export type Guessed = { hasSpentBudget: boolean } & (
  | { outcome: 'wrong' }
  | { outcome: 'continue'; nextPart: number }
  | { outcome: 'right'; success: Success }
)

type Dependencies = { sql: Sql; keys: Keys; buckets: Buckets; now: () => Date }

/** Creates the function that compares a typed code with the codes that `reserveGuess` selects. */
export function createGuess({ sql, keys, buckets, now }: Dependencies) {
  const installation = createInstallationBudget(sql, buckets, now)

  async function reserveAndCompare(caller: Requester, typed: string) {
    const attempts = await reserveGuess(sql, buckets, caller, now())
    if (attempts.length === 0) comparePart(keys, undefined, typed)
    const comparisons = attempts.map(attempt => refuseDecoy(attempt, comparePart(keys, attempt, typed)))
    const found = comparisons.findIndex(({ result }) => result !== 'wrong')
    const wrong = (found < 0 ? attempts : attempts.slice(0, found)).filter(attempt => attempt.is_counted)
    const within = wrong.filter(attempt => attempt.in_installation)
    return {
      result: found < 0 ? undefined : { comparison: comparisons[found]!, attempts: attempts.slice(found) },
      wrong: {
        onePart: within.filter(({ macs }) => macs.length === 1).length,
        within: within.length,
        outside: wrong.length - within.length,
      },
    }
  }

  /**
   * Reserves attempts, compares the typed code, and counts a wrong guess. A right part of several costs no attempt. The
   * caller of this function must use up a right code.
   */
  return async function guess(caller: Requester, typed: string): Promise<Guessed> {
    const isStranger = caller.sessionId === undefined
    const { result, hasSpent } = await installation.run(isStranger, () => reserveAndCompare(caller, typed))
    const hasSpentBudget = hasSpent
    if (!result) return { outcome: 'wrong', hasSpentBudget }
    const { comparison, attempts } = result
    const code = attempts[0]!
    const refund = computeRefund(attempts)
    if (comparison.result !== 'part') return { outcome: 'right', success: { code, refund }, hasSpentBudget }
    const { entered } = comparison
    const isStored = await enterPart(sql, buckets, caller, { code, entered, given: attempts, refund })
    return isStored ? { outcome: 'continue', nextPart: entered, hasSpentBudget } : { outcome: 'wrong', hasSpentBudget }
  }
}

/** A decoy opens no session, so its last part is never right. */
function refuseDecoy({ purpose }: ReservedAttempt, comparison: Comparison): Comparison {
  return purpose === 'decoy' && comparison.result === 'right' ? { result: 'wrong' } : comparison
}
