import type { Language } from '../language.ts'
import { NBSP } from '../typography.ts'
import { type WallClock, wallClock } from './wall-clock.ts'

/** Returns a time such as "18 h 00" or "0 h 00" in French, and "18:00" or "00:00" in English. */
export function timeOfDay(instant: Date, language: Language, timeZone: string): string {
  return formatClock(wallClock(instant, timeZone), language)
}

/** Returns the hour and the minute of a local date and time, in the form of `timeOfDay`. */
export function formatClock({ hour, minute }: WallClock, language: Language): string {
  const minutes = String(minute).padStart(2, '0')
  return language === 'fr' ? `${hour}${NBSP}h${NBSP}${minutes}` : `${String(hour).padStart(2, '0')}:${minutes}`
}
