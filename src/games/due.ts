import { midnight, wallClock } from '../notifications/wall-clock.ts'
import type { Duration } from '../settings.ts'

export type DueTime = { type: 'game_reminder' | 'game_started'; dueAt: Date }

const DAY_MS = 86_400_000

/** When a game's players are to be reminded and told of its start. Offsets that meet ("1d,24h") are two of one time. */
export function dueTimes(startsAt: Date, offsets: readonly Duration[], timeZone: string): DueTime[] {
  const reminders = offsets.map(offset => ({
    type: 'game_reminder' as const,
    dueAt: before(startsAt, offset, timeZone),
  }))
  return [...reminders, { type: 'game_started', dueAt: startsAt }]
}

/** "A day's offset is the same wall-clock time, over a clock change too"; hours, minutes and seconds are elapsed time. */
function before(instant: Date, offset: Duration, timeZone: string): Date {
  if ('ms' in offset) return new Date(instant.getTime() - offset.ms)
  return atWallClock(shownAt(instant.getTime(), timeZone) - offset.days * DAY_MS, timeZone)
}

/**
 * The instant at which the zone's clocks show a time. One that they skip is the hour after (02:30 is 03:30, as clocks go
 * forward); of one that they show twice it is the first: RFC 5545's rule, and Temporal's "compatible".
 */
function atWallClock(shown: number, timeZone: string): Date {
  const offsetAt = (instant: number) => shownAt(instant, timeZone) - instant
  // Clocks change at most once within two days, so that these are the offsets on either side of a change.
  const [earlier, later] = [offsetAt(shown - DAY_MS), offsetAt(shown + DAY_MS)]
  const fits = [earlier, later].find(offset => offsetAt(shown - offset) === offset)
  return new Date(shown - (fits ?? earlier))
}

/** What the zone's clocks show at an instant, as though it were UTC; both in milliseconds. */
function shownAt(instant: number, timeZone: string): number {
  const shown = wallClock(new Date(instant), timeZone)
  const milliseconds = ((instant % 1000) + 1000) % 1000
  return midnight(shown) + (shown.hour * 3600 + shown.minute * 60 + shown.second) * 1000 + milliseconds
}
