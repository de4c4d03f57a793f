import type { Sql } from '../db/sql.ts'
import { fragment } from '../db/statement.ts'
import { type Buckets, giveBack } from './budgets.ts'
import { type Refund, refundAddress } from './give-back.ts'
import type { Requester } from './new-code.ts'
import type { ReservedAttempt } from './reserve-guess.ts'

/**
 * Stores that the caller's network has entered a part of a code, and gives back the attempts that were no wrong
 * guesses.
 * @param entered the number of parts that have been entered
 * @param given the attempts to give back: the attempt with the right part, and attempts at codes that were not compared
 * @returns false if the code has been used or replaced meanwhile
 */
export async function enterPart(
  sql: Sql,
  buckets: Buckets,
  caller: Requester,
  {
    code,
    entered,
    given,
    refund,
  }: {
    code: ReservedAttempt
    entered: number
    given: readonly ReservedAttempt[]
    refund: Refund
  },
): Promise<boolean> {
  const others = given.filter(attempt => !attempt.is_own).map(({ id }) => id)
  const network = fragment`${refund.network}::int`
  const stored = await sql<{ id: string }>`
    with address as materialized (
      select email from sign_in_address where email = ${caller.email} for update
    ), ${refundAddress(caller, buckets, refund, fragment`exists (select from address)`)}, refunded_network as (
      update sign_in_network set ${giveBack(buckets.network, network, fragment`${refund.guesses}::int`)}
      where network = ${caller.network} and ${refund.guesses}::int > 0 and exists (select from address)
    ), given as (
      update sign_in_code as code set attempts = greatest(0, attempts - 1),
        other_attempts = greatest(0, other_attempts - (code.id = any (${others}::uuid[]))::int),
        network_guesses = greatest(0, network_guesses - back.network),
        installation_guesses = greatest(0, installation_guesses - back.installation),
        entered_parts = case when code.id = ${code.id} then ${entered} else entered_parts end,
        entered_network = case when code.id = ${code.id} then ${caller.network}::bytea else entered_network end
      from unnest(${given.map(({ id }) => id)}::uuid[], ${given.map(countNetworkGuesses)}::int[], ${given.map(countInstallationGuesses)}::int[])
        as back (id, network, installation)
      where code.id = back.id and code.email = (select email from address)
      returning code.id
    )
    select id from given where id = ${code.id}`
  return stored.length > 0
}

function countNetworkGuesses({ is_own, is_counted, taken_network }: ReservedAttempt): number {
  return is_own && is_counted ? taken_network : 0
}

function countInstallationGuesses({ is_own, is_counted, in_installation }: ReservedAttempt): number {
  return is_own && is_counted && in_installation ? 1 : 0
}
