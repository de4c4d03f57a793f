import type { Language } from '../language.ts'
import { formatClock } from '../time/time-of-day.ts'
import { midnight, type WallClock, wallClock } from '../time/wall-clock.ts'
import { NBSP } from '../typography.ts'

/** The instant at which a text is rendered, and the IANA time zone for the dates in this text. */
export type LocalTime = { now: Date; timeZone: string }

// These names do not come from Intl, because the names in Intl may change with the version of ICU in Node. Our wording
// must not change.
const WEEKDAYS = {
  fr: ['dimanche', 'lundi', 'mardi', 'mercredi', 'jeudi', 'vendredi', 'samedi'],
  en: ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'],
}
const MONTHS = {
  fr: 'janvier février mars avril mai juin juillet août septembre octobre novembre décembre'.split(' '),
  en: 'January February March April May June July August September October November December'.split(' '),
}

/**
 * Returns a date such as "samedi 17 janvier à 18 h 00" or "Saturday 17 January at 18:00". If the date is not in the
 * current year, the text also contains the year.
 */
export function dateAndTime(instant: Date, language: Language, localTime: LocalTime): string {
  const wall = toZonedDay(instant, localTime.timeZone)
  return joinDayAndTime(dayName(wall, language, localTime), wall, language)
}

/**
 * Returns "aujourd'hui à 18 h 00", "demain, samedi 17 janvier, à 18 h 00" or "le samedi 17 janvier à 18 h 00". The
 * English texts are "today at 18:00", "tomorrow, Saturday 17 January, at 18:00" and "on Saturday 17 January at 18:00".
 * Today and tomorrow are calendar days in the time zone, not periods of 24 hours. A reader may open the notification on
 * the day of the game, so "tomorrow" never appears without the date.
 */
export function relativeDateAndTime(instant: Date, language: Language, localTime: LocalTime): string {
  const wall = toZonedDay(instant, localTime.timeZone)
  const daysAhead = wall.dayNumber - toZonedDay(localTime.now, localTime.timeZone).dayNumber
  const date = dayName(wall, language, localTime)
  if (daysAhead === 0) return joinDayAndTime(language === 'fr' ? "aujourd'hui" : 'today', wall, language)
  if (daysAhead === 1) return joinDayAndTime(`${language === 'fr' ? 'demain' : 'tomorrow'}, ${date},`, wall, language)
  return joinDayAndTime(`${language === 'fr' ? 'le' : 'on'} ${date}`, wall, language)
}

function joinDayAndTime(day: string, wall: WallClock, language: Language): string {
  return `${day} ${language === 'fr' ? 'à' : 'at'} ${formatClock(wall, language)}`
}

function dayName({ year, month, day, weekday }: ZonedDay, language: Language, localTime: LocalTime): string {
  // French uses an ordinal for the first day of a month ("1er août"), and for no other day.
  const number = language === 'fr' && day === 1 ? '1er' : day
  const space = language === 'fr' ? NBSP : ' '
  const otherYear = year === wallClock(localTime.now, localTime.timeZone).year ? '' : ` ${year}`
  return `${WEEKDAYS[language][weekday]} ${number}${space}${MONTHS[language][month - 1]}${otherYear}`
}

type ZonedDay = WallClock & { dayNumber: number; weekday: number }

/**
 * Returns the local date and time in a zone, with the day number and the weekday. The day number counts the calendar
 * days since 1 January 1970. The day number is computed in UTC, where every day has 24 hours. The weekday counts from 0
 * for Sunday.
 */
function toZonedDay(instant: Date, timeZone: string): ZonedDay {
  const wall = wallClock(instant, timeZone)
  const dayNumber = midnight(wall) / 86_400_000
  return { ...wall, dayNumber, weekday: new Date(midnight(wall)).getUTCDay() }
}
