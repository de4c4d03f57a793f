import { type Fragment, fragment } from '../db/statement.ts'
import { type Buckets, giveBack } from './budgets.ts'
import type { Requester } from './new-code.ts'
import type { ReservedAttempt } from './reserve-guess.ts'

/** The guesses to give back to the budgets of the address and of the caller's network. */
export type Refund = { address: number; network: number; guesses: number }

/** Returns the refund for attempts that turned out to be no wrong guesses. */
export function computeRefund(attempts: readonly ReservedAttempt[]): Refund {
  const counted = attempts.filter(attempt => attempt.is_counted)
  return {
    address: counted.reduce((sum, { taken_address }) => sum + taken_address, 0),
    network: counted.reduce((sum, { taken_network }) => sum + taken_network, 0),
    guesses: counted.length,
  }
}

/** Returns the step that gives guesses back to the address. @param condition whether to give them back */
export function refundAddress(
  { email }: Requester,
  { address }: Buckets,
  refund: Refund,
  condition: Fragment,
): Fragment {
  return fragment`
    refunded_address as (
      update sign_in_address set ${giveBack(address, fragment`${refund.address}::int`, fragment`${refund.guesses}::int`)}
      where email = ${email} and ${refund.guesses}::int > 0 and ${condition}
    )`
}
