/** Formats an instant in UTC without fractions of a second: `2026-01-17T14:30:00+00:00`. */
export function timestamp(instant: Date): string {
  return `${instant.toISOString().slice(0, 19)}+00:00`
}

const RFC_3339 = /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))$/

/**
 * Rewrites an RFC 3339 instant in the form `2026-01-17T14:30:00.000000Z`. Strings of this form sort by time. Digits
 * after the microseconds are cut off, because PostgreSQL does not store them.
 * @returns undefined if the text is not an RFC 3339 instant, the day does not exist, or the year is not between 1 and
 *   9999
 */
export function canonicalInstant(text: string): string | undefined {
  const [, year, month, day, hour, minute, second, fraction = '', sign, offsetHours = 0, offsetMinutes = 0] =
    RFC_3339.exec(text) ?? []
  if (!year) return undefined
  const date = new Date(0)
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day))
  if (date.getUTCMonth() + 1 !== Number(month) || date.getUTCDate() !== Number(day)) return undefined
  // RFC 3339 allows the leap second `:60`. We treat it as the first second of the next minute.
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 60) return undefined
  if (Number(offsetHours) > 23 || Number(offsetMinutes) > 59) return undefined
  const offset = (sign === '-' ? -1 : 1) * (Number(offsetHours) * 60 + Number(offsetMinutes))
  date.setUTCHours(Number(hour), Number(minute) - offset, Number(second))
  const seconds = date.toISOString().slice(0, -5)
  if (!/^\d{4}-/.test(seconds) || seconds.startsWith('0000')) return undefined
  return `${seconds}.${fraction.padEnd(6, '0').slice(0, 6)}Z`
}
