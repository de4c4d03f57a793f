/** A local date and time. `month` counts from 1. */
export type WallClock = { year: number; month: number; day: number; hour: number; minute: number; second: number }

// Creating an Intl.DateTimeFormat takes about twenty times longer than using it. So this map keeps one formatter for
// each time zone.
const formatters = new Map<string, Intl.DateTimeFormat>()

/**
 * Returns the local date and time of a zone at an instant.
 * @throws RangeError for an invalid date or an unknown zone
 */
export function wallClock(instant: Date, timeZone: string): WallClock {
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
    formatters.set(timeZone, formatter)
  }
  const parts = formatter.formatToParts(instant).map(({ type, value }) => [type, Number(value)])
  const { year, month, day, hour, minute, second } = Object.fromEntries(parts)
  return { year, month, day, hour, minute, second }
}

/**
 * Returns midnight in UTC on a calendar day, in milliseconds since 1970. The function does not use `Date.UTC`, because
 * `Date.UTC` adds 1900 to a year below 100.
 */
export function midnight({ year, month, day }: WallClock): number {
  return new Date(0).setUTCFullYear(year, month - 1, day)
}
