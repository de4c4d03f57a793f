import { findInstants, toWallTime } from '../time/wall-clock.ts'

/** The hours of a day in which no push and no mail about notifications leaves. The times are `HH:MM`. */
export type QuietHours = { enabled: boolean; from: string; to: string }

const DAY_MS = 86_400_000

/**
 * Returns the end of the quiet hours that contain an instant, or undefined if the instant is outside. The quiet hours
 * include their first instant and not their end. If `from` is later than `to`, they cross midnight.
 *
 * A time that a clock change skips moves to the next time that exists. Of a time that occurs twice, `from` means the
 * first and `to` the second (decisions.md, "quiet hours on the day of a clock change").
 * @throws RangeError for an unknown time zone
 */
export function findQuietEnd(instant: Date, quietHours: QuietHours, timeZone: string): Date | undefined {
  const { enabled, from, to } = quietHours
  if (!enabled || from === to) return undefined
  const today = Math.floor(toWallTime(instant, timeZone) / DAY_MS) * DAY_MS
  // The quiet hours that contain the instant began yesterday or today. At a clock change just after midnight, the quiet
  // hours of tomorrow may have begun, and the clocks may show today again.
  const ends = [today - DAY_MS, today, today + DAY_MS].flatMap(day => {
    const start = findStart(day + readTime(from), timeZone)
    if (start > instant.getTime()) return []
    const end = findEnd(day + readTime(to) + (from < to ? 0 : DAY_MS), timeZone)
    return end > instant.getTime() ? [end] : []
  })
  if (ends.length === 0) return undefined
  const end = new Date(Math.max(...ends))
  // At a clock change, the next quiet hours may begin before these end.
  return findQuietEnd(end, quietHours, timeZone) ?? end
}

function findStart(wallTime: number, timeZone: string): number {
  const { first, before, after } = findInstants(wallTime, timeZone)
  return first ?? findClockChange(after, before, timeZone)
}

function findEnd(wallTime: number, timeZone: string): number {
  const { last, before, after } = findInstants(wallTime, timeZone)
  return last ?? findClockChange(after, before, timeZone)
}

/**
 * Returns the instant of the clock change between two instants, at which the first time after the skipped ones begins.
 */
function findClockChange(start: number, end: number, timeZone: string): number {
  const utcOffsetAt = (instant: number) => toWallTime(new Date(instant), timeZone) - instant
  let [before, after] = [start, end]
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2)
    if (utcOffsetAt(middle) === utcOffsetAt(end)) after = middle
    else before = middle
  }
  return after
}

/** Returns the milliseconds from midnight to a time `HH:MM`. */
function readTime(time: string): number {
  const [hours, minutes] = time.split(':').map(Number)
  return (hours! * 60 + minutes!) * 60_000
}
