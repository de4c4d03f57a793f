import type { Sql } from '../db/sql.ts'
import { type Fragment, fragment } from '../db/statement.ts'
import type { GameState } from './timing.ts'

/** The state that the look at a delivery has read: the version of the preferences, and the game. */
export type Seen = { userId: number; version: number; gameId: number | null; game: GameState | undefined }

/**
 * Defers a leased delivery because of quiet hours, and releases its lease. Forgets failed attempts, so the delivery
 * does not count as one that fails. Writes only if the preferences and the game are still those that the look has read.
 *
 * A change of quiet hours locks the account, and an event locks the game. Both make the waiting rows ready before they
 * commit. The first two statements wait for such a transaction, and later transactions wait for this one. So either the
 * third statement sees the change, or the change sees the deferred row. The third statement needs a snapshot that is
 * newer than the locks, so all three cannot be one statement.
 * @returns false if the preferences or the game have changed. The worker must then look again. True if the row is
 *   deferred, or belongs to another worker by now
 */
export async function defer(
  sql: Sql,
  { id, lease }: { id: number; lease: string },
  until: Date,
  { userId, version, gameId, game }: Seen,
): Promise<boolean> {
  return sql.begin(async tx => {
    const [, , [row]] = await Promise.all([
      tx`select id from game where id = ${gameId} for share`,
      tx`select id from app_user where id = ${userId} for share`,
      tx<{ is_settled: boolean }>`
        with delivery as (
          select id from outbox where id = ${id} and lease = ${lease}
        ), deferred as (
          update outbox set ready = false, due = ${until}, lease = null, leased_until = null, attempts = 0
          from delivery
          where outbox.id = delivery.id and lease = ${lease}
            and coalesce((select version from notification_preference where user_id = ${userId}), 0) = ${version}
            and ${gameId === null || game === undefined ? NO_GAME : isSame(gameId, game)}
          returning outbox.id
        )
        select not exists (select from delivery) or exists (select from deferred) as is_settled`,
    ])
    return row!.is_settled
  })
}

const NO_GAME = fragment`true`

/** Returns whether the state of the game is unchanged. A Date has no microseconds. */
function isSame(gameId: number, { startsAt, cancelled }: GameState): Fragment {
  return fragment`exists (
    select from game
    where id = ${gameId} and cancelled = ${cancelled}
      and date_trunc('milliseconds', starts_at) is not distinct from ${startsAt ?? null}::timestamptz)`
}
