import type { Sql } from '../db/sql.ts'
import type { LocalTime } from '../notifications/dates.ts'
import type { Duration } from '../setting-parsers.ts'
import { dueTimes } from './due-times.ts'
import * as onceKeys from './once-key.ts'
import type { Game } from './projection.ts'

/** The local time, and the offsets. An offset says how long before the start of a game the players get a reminder. */
export type ReminderSettings = LocalTime & { reminderOffsets: readonly Duration[] }

/**
 * Updates the rows of games in the table `game_schedule`, in the transaction of the events that changed the games. The
 * caller must have locked the games. If the start of a game has changed, deletes the rows for the earlier start. If a
 * game was cancelled, deletes all its rows. Inserts those due times for the new start that are later than `now`. If a
 * game is not cancelled and its start is unchanged, keeps all rows of the game. This includes rows that are overdue but
 * not announced yet, and rows that come from an earlier value of REMINDER_OFFSETS.
 * @param known the states of the games before the events, by game id
 * @param changed the new states of the games that the events changed
 */
export async function planReminders(
  sql: Sql,
  known: ReadonlyMap<number, Game>,
  changed: readonly Game[],
  { now, timeZone, reminderOffsets }: ReminderSettings,
): Promise<void> {
  const moved = changed.filter(game => isMoved(known.get(game.id)!, game))
  if (moved.length === 0) return
  const starts = moved.map(({ startsAt, cancelled }) => (cancelled ? null : startsAt))
  const rows = moved.flatMap(({ id }, index) => {
    const startsAt = starts[index]
    if (!startsAt) return []
    return dueTimes(new Date(startsAt), reminderOffsets, timeZone)
      .filter(({ dueAt }) => dueAt > now)
      .map(({ type, dueAt }) => ({ game_id: id, starts_at: startsAt, type, due_at: dueAt }))
  })
  await sql`
    with outdated as (
      delete from game_schedule using unnest(${moved.map(game => game.id)}::bigint[], ${starts}::timestamptz[])
        as moved (id, starts_at)
      where game_id = moved.id and game_schedule.starts_at is distinct from moved.starts_at
    )
    insert into game_schedule (game_id, starts_at, type, due_at)
    select game_id, starts_at, type, due_at
    from json_to_recordset(${JSON.stringify(rows)}::json)
      as planned (game_id bigint, starts_at timestamptz, type text, due_at timestamptz)
    on conflict on constraint game_schedule_pkey do nothing`
}

/**
 * Returns whether a game needs a new schedule. A score event can store the start of a game, but it plans no due times.
 * So the first event that is not a score event needs a new schedule, even if it reports the start that is already
 * stored.
 */
function isMoved(before: Game, game: Game): boolean {
  return before.eventTime === null || before.startsAt !== game.startsAt || before.cancelled !== game.cancelled
}

/**
 * Deletes those of our reminders that a producer's reminder replaces: all overdue reminders, or the next reminder if
 * none is overdue. So the players do not get our reminder in addition to the producer's reminder. Keeps our reminders
 * that are due later.
 * @param reminded the games for which the producer has just reported a reminder
 */
export async function replaceByProducerReminder(sql: Sql, reminded: readonly Game[], now: Date): Promise<void> {
  const replaced = await sql<{ game_id: number; starts_at: Date; due_at: Date }>`
    with next as (
      select game_id, game_schedule.starts_at, min(due_at) as due_at
      from game_schedule join unnest(${reminded.map(game => game.id)}::bigint[],
        ${reminded.map(game => game.startsAt)}::timestamptz[]) as reminded (id, starts_at)
        on game_id = reminded.id and game_schedule.starts_at = reminded.starts_at
      where type = 'game_reminder'
      group by game_id, game_schedule.starts_at
    )
    delete from game_schedule using next
    where game_schedule.game_id = next.game_id and game_schedule.starts_at = next.starts_at and type = 'game_reminder'
      and game_schedule.due_at <= greatest(next.due_at, ${now})
    returning game_schedule.game_id, game_schedule.starts_at, game_schedule.due_at`
  if (replaced.length === 0) return
  // If a game later moves to another start and then back to its present start, `planReminders` inserts the deleted due
  // times again. This function claims the once-keys of the deleted due times, so the schedule does not announce them in
  // this case.
  const keys = reminded.flatMap(game =>
    replaced
      .filter(row => row.game_id === game.id && row.starts_at.getTime() === Date.parse(game.startsAt!))
      .map(row => onceKeys.reminderKey(game, row.due_at)),
  )
  await onceKeys.claim(sql, keys, now)
}
