import type { Language } from '../language.ts'
import { NBSP } from './typography.ts'
import { midnight, type WallClock, wallClock } from './wall-clock.ts'

/** The reader's clock: the instant the text is written at, and the IANA zone its dates are told in. */
export type LocalTime = { now: Date; timeZone: string }

// Our own words rather than Intl's: the wording is part of the contract, and Intl's moves with the ICU of each Node.
const WEEKDAYS = {
  fr: ['dimanche', 'lundi', 'mardi', 'mercredi', 'jeudi', 'vendredi', 'samedi'],
  en: ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'],
}
const MONTHS = {
  fr: 'janvier février mars avril mai juin juillet août septembre octobre novembre décembre'.split(' '),
  en: 'January February March April May June July August September October November December'.split(' '),
}

/** "samedi 17 janvier à 18 h 00" / "Saturday 17 January at 18:00", with the year when it is not the clock's own. */
export function dateAndTime(instant: Date, language: Language, clock: LocalTime): string {
  const shown = inZone(instant, clock.timeZone)
  return at(dayName(shown, language, clock), shown, language)
}

/**
 * "aujourd'hui à 18 h 00", "demain à 18 h 00", "le samedi 17 janvier à 18 h 00" / "today at 18:00", "tomorrow at 18:00",
 * "on Saturday 17 January at 18:00". Today and tomorrow are days of the zone's calendar, not spans of 24 hours.
 */
export function relativeDateAndTime(instant: Date, language: Language, clock: LocalTime): string {
  const shown = inZone(instant, clock.timeZone)
  const daysAhead = shown.dayNumber - inZone(clock.now, clock.timeZone).dayNumber
  const near = (language === 'fr' ? ["aujourd'hui", 'demain'] : ['today', 'tomorrow'])[daysAhead]
  const day = near ?? `${language === 'fr' ? 'le' : 'on'} ${dayName(shown, language, clock)}`
  return at(day, shown, language)
}

/** "18 h 00", "0 h 00" / "18:00", "00:00". */
export function timeOfDay(instant: Date, language: Language, timeZone: string): string {
  return clockTime(wallClock(instant, timeZone), language)
}

function clockTime({ hour, minute }: WallClock, language: Language): string {
  const minutes = String(minute).padStart(2, '0')
  return language === 'fr' ? `${hour}${NBSP}h${NBSP}${minutes}` : `${String(hour).padStart(2, '0')}:${minutes}`
}

function at(day: string, shown: WallClock, language: Language): string {
  return `${day} ${language === 'fr' ? 'à' : 'at'} ${clockTime(shown, language)}`
}

function dayName({ year, month, day, weekday }: InZone, language: Language, clock: LocalTime): string {
  // French counts the first of a month with an ordinal ("1er août"), and only the first.
  const number = language === 'fr' && day === 1 ? '1er' : day
  const space = language === 'fr' ? NBSP : ' '
  const otherYear = year === wallClock(clock.now, clock.timeZone).year ? '' : ` ${year}`
  return `${WEEKDAYS[language][weekday]} ${number}${space}${MONTHS[language][month - 1]}${otherYear}`
}

type InZone = WallClock & { dayNumber: number; weekday: number }

/** The wall clock of the zone, with the day as a number: counted in UTC days are 24 hours long, whatever the clocks do. */
function inZone(instant: Date, timeZone: string): InZone {
  const shown = wallClock(instant, timeZone)
  const dayNumber = midnight(shown) / 86_400_000
  return { ...shown, dayNumber, weekday: new Date(midnight(shown)).getUTCDay() }
}
