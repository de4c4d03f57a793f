import { type Language, TEXTS } from './texts.ts'

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ['year', 31_536_000],
  ['month', 2_592_000],
  ['week', 604_800],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
]

/**
 * Returns a text that says how long ago an instant was, such as "2 minutes ago". For a future instant, which a wrong
 * clock may produce, the text is "just now".
 */
export function relativeTime(instant: Date, now: Date, language: Language): string {
  const seconds = (now.getTime() - instant.getTime()) / 1000
  const fitting = UNITS.find(([, size]) => seconds >= size)
  if (!fitting) return TEXTS[language].now
  const [unit, size] = fitting
  return new Intl.RelativeTimeFormat(language, { numeric: 'auto' }).format(-Math.floor(seconds / size), unit)
}
