/** A local date and time. `month` counts from 1. */
export type WallClock = { year: number; month: number; day: number; hour: number; minute: number; second: number }

// Creating an Intl.DateTimeFormat takes some twenty times longer than using it, so there is one for each zone.
const calendars = new Map<string, Intl.DateTimeFormat>()

/**
 * Returns the local date and time of a zone at an instant.
 * @throws RangeError for an invalid date or an unknown zone
 */
export function wallClock(instant: Date, timeZone: string): WallClock {
  let calendar = calendars.get(timeZone)
  if (!calendar) {
    calendar = new Intl.DateTimeFormat('en-US', {
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
    calendars.set(timeZone, calendar)
  }
  const parts = calendar.formatToParts(instant).map(({ type, value }) => [type, Number(value)])
  const { year, month, day, hour, minute, second } = Object.fromEntries(parts)
  return { year, month, day, hour, minute, second }
}

/** Returns the midnight of a day in UTC, in milliseconds since 1970. `Date.UTC` would misread years below 100. */
export function midnight({ year, month, day }: WallClock): number {
  return new Date(0).setUTCFullYear(year, month - 1, day)
}
