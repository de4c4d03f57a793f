import type { Language } from '../language.ts'
import { NBSP } from './typography.ts'
import { midnight, type WallClock, wallClock } from './wall-clock.ts'

/** The instant at which a text is written, and the IANA time zone of its dates. */
export type LocalTime = { now: Date; timeZone: string }

// Not the names of Intl: the wording is part of the contract, and the names of Intl may change with the ICU of Node.
const WEEKDAYS = {
  fr: ['dimanche', 'lundi', 'mardi', 'mercredi', 'jeudi', 'vendredi', 'samedi'],
  en: ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'],
}
const MONTHS = {
  fr: 'janvier février mars avril mai juin juillet août septembre octobre novembre décembre'.split(' '),
  en: 'January February March April May June July August September October November December'.split(' '),
}

/**
 * Returns "samedi 17 janvier à 18 h 00" or "Saturday 17 January at 18:00". Another year than the current one is added.
 */
export function dateAndTime(instant: Date, language: Language, localTime: LocalTime): string {
  const wall = toZonedDay(instant, localTime.timeZone)
  return joinDayAndTime(dayName(wall, language, localTime), wall, language)
}

/**
 * Returns "aujourd'hui à 18 h 00", "demain à 18 h 00" or "le samedi 17 janvier à 18 h 00"; in English "today at 18:00",
 * "tomorrow at 18:00" or "on Saturday 17 January at 18:00". Today and tomorrow are calendar days of the zone, not spans
 * of 24 hours.
 */
export function relativeDateAndTime(instant: Date, language: Language, localTime: LocalTime): string {
  const wall = toZonedDay(instant, localTime.timeZone)
  const daysAhead = wall.dayNumber - toZonedDay(localTime.now, localTime.timeZone).dayNumber
  const relativeDay = (language === 'fr' ? ["aujourd'hui", 'demain'] : ['today', 'tomorrow'])[daysAhead]
  const day = relativeDay ?? `${language === 'fr' ? 'le' : 'on'} ${dayName(wall, language, localTime)}`
  return joinDayAndTime(day, wall, language)
}

/** Returns "18 h 00" and "0 h 00", or in English "18:00" and "00:00". */
export function timeOfDay(instant: Date, language: Language, timeZone: string): string {
  return clockTime(wallClock(instant, timeZone), language)
}

function clockTime({ hour, minute }: WallClock, language: Language): string {
  const minutes = String(minute).padStart(2, '0')
  return language === 'fr' ? `${hour}${NBSP}h${NBSP}${minutes}` : `${String(hour).padStart(2, '0')}:${minutes}`
}

function joinDayAndTime(day: string, wall: WallClock, language: Language): string {
  return `${day} ${language === 'fr' ? 'à' : 'at'} ${clockTime(wall, language)}`
}

function dayName({ year, month, day, weekday }: ZonedDay, language: Language, localTime: LocalTime): string {
  // French counts the first of a month with an ordinal ("1er août"), and only the first.
  const number = language === 'fr' && day === 1 ? '1er' : day
  const space = language === 'fr' ? NBSP : ' '
  const otherYear = year === wallClock(localTime.now, localTime.timeZone).year ? '' : ` ${year}`
  return `${WEEKDAYS[language][weekday]} ${number}${space}${MONTHS[language][month - 1]}${otherYear}`
}

type ZonedDay = WallClock & { dayNumber: number; weekday: number }

/**
 * Returns the wall clock of a zone and its day number. Counted in UTC, each day has 24 hours, even at a clock change.
 */
function toZonedDay(instant: Date, timeZone: string): ZonedDay {
  const wall = wallClock(instant, timeZone)
  const dayNumber = midnight(wall) / 86_400_000
  return { ...wall, dayNumber, weekday: new Date(midnight(wall)).getUTCDay() }
}
