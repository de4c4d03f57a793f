import type { Duration } from '../setting-parsers.ts'
import { findInstants, toWallTime } from '../time/wall-clock.ts'

export type DueTime = { type: 'game_reminder' | 'game_started'; dueAt: Date }

const DAY_MS = 86_400_000

/**
 * Returns the due times of a game's reminders and of its start. Two offsets can result in the same due time. For
 * example, "1d" and "24h" do, unless a clock change lies between the due time and the start.
 */
export function dueTimes(startsAt: Date, offsets: readonly Duration[], timeZone: string): DueTime[] {
  const reminders = offsets.map(offset => ({
    type: 'game_reminder' as const,
    dueAt: subtract(startsAt, offset, timeZone),
  }))
  return [...reminders, { type: 'game_started', dueAt: startsAt }]
}

/**
 * Subtracts an offset from an instant. An offset in days keeps the wall-clock time, even across a clock change. An
 * offset in hours, minutes or seconds is subtracted as elapsed time.
 */
function subtract(instant: Date, offset: Duration, timeZone: string): Date {
  if ('ms' in offset) return new Date(instant.getTime() - offset.ms)
  return fromWallTime(toWallTime(instant, timeZone) - offset.days * DAY_MS, timeZone)
}

/**
 * Returns the instant of a wall-clock time. If a clock change skips the time, the instant is one hour later. For
 * example, the function returns the instant of 03:30 for the skipped time 02:30. If the time occurs twice, the instant
 * is the first occurrence. These are the rules of RFC 5545. The JavaScript API Temporal calls these rules "compatible".
 */
function fromWallTime(wallTime: number, timeZone: string): Date {
  const { first, before } = findInstants(wallTime, timeZone)
  return new Date(first ?? before)
}
