import { midnight, wallClock } from '../notifications/wall-clock.ts'
import type { Duration } from '../settings.ts'

export type DueTime = { type: 'game_reminder' | 'game_started'; dueAt: Date }

const DAY_MS = 86_400_000

/**
 * Returns when to remind the players of a game and when to announce its start. Offsets of equal length ("1d,24h")
 * return the same due time twice.
 */
export function dueTimes(startsAt: Date, offsets: readonly Duration[], timeZone: string): DueTime[] {
  const reminders = offsets.map(offset => ({
    type: 'game_reminder' as const,
    dueAt: subtract(startsAt, offset, timeZone),
  }))
  return [...reminders, { type: 'game_started', dueAt: startsAt }]
}

/**
 * "A day's offset is the same wall-clock time, over a clock change too"; hours, minutes and seconds are elapsed time.
 */
function subtract(instant: Date, offset: Duration, timeZone: string): Date {
  if ('ms' in offset) return new Date(instant.getTime() - offset.ms)
  return fromWallClock(toWallClock(instant.getTime(), timeZone) - offset.days * DAY_MS, timeZone)
}

/**
 * Returns the instant of a wall-clock time. A time that a clock change skips is one hour later (02:30 becomes 03:30).
 * Of a time that occurs twice, it returns the first. RFC 5545 has these rules, and Temporal calls them "compatible".
 */
function fromWallClock(wallTime: number, timeZone: string): Date {
  const offsetAt = (instant: number) => toWallClock(instant, timeZone) - instant
  // Clocks change at most once in two days. So these are the offsets before and after the change.
  const [earlier, later] = [offsetAt(wallTime - DAY_MS), offsetAt(wallTime + DAY_MS)]
  const valid = [earlier, later].find(offset => offsetAt(wallTime - offset) === offset)
  return new Date(wallTime - (valid ?? earlier))
}

/** Returns the wall-clock time of an instant, encoded as if it were UTC. Both are in milliseconds since 1970. */
function toWallClock(instant: number, timeZone: string): number {
  const wall = wallClock(new Date(instant), timeZone)
  const milliseconds = ((instant % 1000) + 1000) % 1000
  return midnight(wall) + (wall.hour * 3600 + wall.minute * 60 + wall.second) * 1000 + milliseconds
}
