import type { Language } from '../http/language.ts'
import { NBSP } from './typography.ts'
import { midnight, wallClock } from './wall-clock.ts'

/** The reader's clock: the instant the text is written at, and the IANA zone its dates are told in. */
export type Clock = { now: Date; timeZone: string }

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
export function dateAndTime(instant: Date, language: Language, clock: Clock): string {
  return at(dayName(instant, language, clock), instant, language, clock)
}

/**
 * "aujourd'hui à 18 h 00", "demain à 18 h 00", "le samedi 17 janvier à 18 h 00" / "today at 18:00", "tomorrow at 18:00",
 * "on Saturday 17 January at 18:00". Today and tomorrow are days of the zone's calendar, not spans of 24 hours.
 */
export function relativeDateAndTime(instant: Date, language: Language, clock: Clock): string {
  const daysAhead = inZone(instant, clock.timeZone).dayNumber - inZone(clock.now, clock.timeZone).dayNumber
  const near = (language === 'fr' ? ["aujourd'hui", 'demain'] : ['today', 'tomorrow'])[daysAhead]
  const day = near ?? `${language === 'fr' ? 'le' : 'on'} ${dayName(instant, language, clock)}`
  return at(day, instant, language, clock)
}

/** "18 h 00", "0 h 00" / "18:00", "00:00". */
export function timeOfDay(instant: Date, language: Language, timeZone: string): string {
  const { hour, minute } = inZone(instant, timeZone)
  const minutes = String(minute).padStart(2, '0')
  return language === 'fr' ? `${hour}${NBSP}h${NBSP}${minutes}` : `${String(hour).padStart(2, '0')}:${minutes}`
}

function at(day: string, instant: Date, language: Language, clock: Clock): string {
  return `${day} ${language === 'fr' ? 'à' : 'at'} ${timeOfDay(instant, language, clock.timeZone)}`
}

function dayName(instant: Date, language: Language, clock: Clock): string {
  const { year, month, day, weekday } = inZone(instant, clock.timeZone)
  // French counts the first of a month with an ordinal ("1er août"), and only the first.
  const number = language === 'fr' && day === 1 ? '1er' : day
  const space = language === 'fr' ? NBSP : ' '
  const otherYear = year === inZone(clock.now, clock.timeZone).year ? '' : ` ${year}`
  return `${WEEKDAYS[language][weekday]} ${number}${space}${MONTHS[language][month - 1]}${otherYear}`
}

/** The wall clock of the zone, with the day as a number: counted in UTC days are 24 hours long, whatever the clocks do. */
function inZone(instant: Date, timeZone: string) {
  const shown = wallClock(instant, timeZone)
  const dayNumber = midnight(shown) / 86_400_000
  return { ...shown, dayNumber, weekday: new Date(midnight(shown)).getUTCDay() }
}
