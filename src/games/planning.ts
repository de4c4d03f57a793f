import type { Sql } from '../db/sql.ts'
import type { LocalTime } from '../notifications/dates.ts'
import type { Duration } from '../settings.ts'
import { dueTimes } from './due.ts'
import * as games from './games.ts'
import type { Game } from './projection.ts'

/** The reader's clock, and how long before a game its players are reminded. */
export type ReminderSettings = LocalTime & { reminderOffsets: readonly Duration[] }

/**
 * Plans what locked games have become, in the event's own transaction: what was planned for another start, or for a game that
 * is cancelled, goes; what is due later than now is added. A game whose start is what it was is left alone, so that what is
 * due and not told yet stays, and so does what was planned when REMINDER_OFFSETS were others.
 * @param known the games as they were before
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
    with gone as (
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

/** A game that only a score has made known has no schedule: it becomes known to it by its first event. */
function isMoved(before: Game, game: Game): boolean {
  return before.eventTime === null || before.startsAt !== game.startsAt || before.cancelled !== game.cancelled
}

/**
 * Lets a producer's own reminders, told just now, take the place of ours: of those that are overdue, else of the next one. So
 * nobody is reminded twice for one reason, and of several offsets the later ones stay.
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
  // Kept as told, lest the game move and come back to this start, and it be planned again.
  const onceKeys = reminded.flatMap(game =>
    replaced
      .filter(row => row.game_id === game.id && row.starts_at.getTime() === Date.parse(game.startsAt!))
      .map(row => ({ game, onceKey: reminderOnceKey(game, row.due_at) })),
  )
  await games.claimOnceKeys(sql, onceKeys, now)
}

/** What names one of our reminders among all that is told of a game. A producer's own is named by the start alone. */
export function reminderOnceKey({ startsAt }: Game, dueAt: Date): string {
  return `reminder@${startsAt} due ${dueAt.toISOString()}`
}
