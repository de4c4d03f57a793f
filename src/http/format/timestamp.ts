/** Formats an instant to the second: "Timestamps have the form `2026-01-17T14:30:00+00:00`". */
export function timestamp(instant: Date): string {
  return `${instant.toISOString().slice(0, 19)}+00:00`
}

const RFC_3339 = /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))$/

/**
 * Rewrites an RFC 3339 instant as `2026-01-17T14:30:00.000000Z`, so texts sort in the order of time. Cuts off digits beyond
 * PostgreSQL's microseconds. Returns undefined for any other text, for a day that the calendar does not have, and for years
 * outside 1 to 9999.
 */
export function canonicalInstant(text: string): string | undefined {
  const [, year, month, day, hour, minute, second, fraction = '', sign, offsetHours = 0, offsetMinutes = 0] =
    RFC_3339.exec(text) ?? []
  if (!year) return undefined
  const date = new Date(0)
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day))
  if (date.getUTCMonth() + 1 !== Number(month) || date.getUTCDate() !== Number(day)) return undefined
  // RFC 3339 allows a leap second, `:60`: it becomes the first second of the next minute.
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 60) return undefined
  if (Number(offsetHours) > 23 || Number(offsetMinutes) > 59) return undefined
  const offset = (sign === '-' ? -1 : 1) * (Number(offsetHours) * 60 + Number(offsetMinutes))
  date.setUTCHours(Number(hour), Number(minute) - offset, Number(second))
  const seconds = date.toISOString().slice(0, -5)
  if (!/^\d{4}-/.test(seconds) || seconds.startsWith('0000')) return undefined
  return `${seconds}.${fraction.padEnd(6, '0').slice(0, 6)}Z`
}
