import { type Hint, OUTBOX_HINT } from '../db/hints.ts'
import type { Sql } from '../db/sql.ts'
import type { Game } from './projection.ts'

/**
 * Wakes the waiting pushes and mails about games that were moved or cancelled, so the workers look at them again
 * immediately. Quiet hours delay a delivery only until an hour before the start, and some deliveries have become
 * pointless.
 *
 * The transaction has locked the games, and a worker locks them too before it defers a delivery. So a deferral either
 * sees the change or is woken. The rows are locked in the order of their keys, as a change of preferences does, so both
 * cannot deadlock.
 * @param changed the new states of the games that the events changed
 * @returns the hint for the workers. The caller sends it after its commit
 */
export async function wakeDeliveries(
  tx: Sql,
  known: ReadonlyMap<number, Game>,
  changed: readonly Game[],
  now: Date,
): Promise<readonly Hint[]> {
  const ids = changed.filter(game => isOtherwise(known.get(game.id)!, game)).map(({ id }) => id)
  if (ids.length === 0) return []
  await Promise.all([
    tx`
      update outbox set ready = true, due = ${now}
      where id in (select id from outbox where game_id = any(${ids}::bigint[]) and not ready order by id for update)`,
    tx`
      update waiting_mail set look_at = ${now}
      where (user_id, notification_id) in (
        select user_id, notification_id from waiting_mail
        where game_id = any(${ids}::bigint[]) and look_at > ${now}
        order by user_id, notification_id for update)`,
  ])
  return [OUTBOX_HINT]
}

function isOtherwise(before: Game, game: Game): boolean {
  return before.startsAt !== game.startsAt || before.cancelled !== game.cancelled
}
