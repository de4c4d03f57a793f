/** A local date and time. `month` counts from 1. */
export type WallClock = { year: number; month: number; day: number; hour: number; minute: number; second: number }

// Creating an Intl.DateTimeFormat takes about twenty times longer than using it. So this map keeps one formatter for
// each time zone.
const formatters = new Map<string, Intl.DateTimeFormat>()

// `Intl` ignores the case of a name, so callers could send a name in any number of spellings.
const MAX_FORMATTERS = 1_000

/**
 * Returns the local date and time of a zone at an instant.
 * @throws RangeError for an invalid date or an unknown zone
 */
export function wallClock(instant: Date, timeZone: string): WallClock {
  // The text looks like "1/17/2026, 18:00:00". `formatToParts` takes more than twice as long.
  const numbers = findFormatter(timeZone).format(instant).split(/\D+/).map(Number)
  const [month, day, year, hour, minute, second] = numbers as [number, number, number, number, number, number]
  return { year, month, day, hour, minute, second }
}

/**
 * Returns midnight in UTC on a calendar day, in milliseconds since 1970. The function does not use `Date.UTC`, because
 * `Date.UTC` adds 1900 to a year below 100.
 */
export function midnight({ year, month, day }: WallClock): number {
  return new Date(0).setUTCFullYear(year, month - 1, day)
}

/** Returns whether a name is an IANA name of a time zone that this version of Node knows. */
export function isTimeZone(name: string): boolean {
  // `Intl` also accepts UTC offsets such as "+02:00".
  if (!/^[a-z][\w+/-]{0,63}$/i.test(name)) return false
  try {
    findFormatter(name)
    return true
  } catch {
    return false
  }
}

/** @throws RangeError for an unknown zone */
function findFormatter(timeZone: string): Intl.DateTimeFormat {
  let formatter = formatters.get(timeZone)
  if (!formatter) {
    formatter = new Intl.DateTimeFormat('en-US', {
      timeZone,
      calendar: 'gregory',
      numberingSystem: 'latn',
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    })
    if (formatters.size >= MAX_FORMATTERS) formatters.clear()
    formatters.set(timeZone, formatter)
  }
  return formatter
}

const DAY_MS = 86_400_000

/**
 * Returns the wall-clock time of an instant, encoded as if it were a time in UTC, in milliseconds since 1970.
 * @throws RangeError for an invalid date or an unknown zone
 */
export function toWallTime(instant: Date, timeZone: string): number {
  const wall = wallClock(instant, timeZone)
  const milliseconds = ((instant.getTime() % 1000) + 1000) % 1000
  return midnight(wall) + (wall.hour * 3600 + wall.minute * 60 + wall.second) * 1000 + milliseconds
}

/**
 * Returns the instants at which a zone has a wall-clock time, in milliseconds since 1970. If a clock change skips the
 * time, there is no such instant. If the time occurs twice, there are two. `before` is the instant by the UTC offset
 * before a clock change, and `after` is the instant by the UTC offset after the change. If the time is skipped, the
 * wall-clock times of both instants are different from this time.
 */
export function findInstants(wallTime: number, timeZone: string) {
  const utcOffsetAt = (instant: number) => toWallTime(new Date(instant), timeZone) - instant
  // Clocks change at most once within two days. So these are the UTC offsets before and after a possible change.
  const [before, after] = [wallTime - utcOffsetAt(wallTime - DAY_MS), wallTime - utcOffsetAt(wallTime + DAY_MS)]
  const valid = [before, after].filter(instant => toWallTime(new Date(instant), timeZone) === wallTime)
  return { first: valid[0], last: valid.at(-1), before, after }
}
