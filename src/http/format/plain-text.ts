// ZWJ and ZWNJ are format controls that some scripts need for correct spelling, for example Persian and Malayalam.
const FORMAT_CONTROLS = /(?![\u200c\u200d])\p{Cf}/gu

// The code points whose default bidirectional class is R or AL: Hebrew, Arabic, Syriac, Thaana, N'Ko and the historic
// scripts beside them.
const RIGHT_TO_LEFT_LETTER = /(?=\p{L})[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u

const FIRST_STRONG_ISOLATE = '\u2068'
const POP_DIRECTIONAL_ISOLATE = '\u2069'

/** A pattern for text without line breaks and other control characters. `PLAIN_LINE` is stricter. */
export const ONE_LINE = '^[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029]*$'

/**
 * A pattern for text on one line: it matches text without line breaks, without other control characters and without
 * format controls except ZWJ and ZWNJ. Format controls include the marks that change the direction of the text after
 * them. The pattern lists only code points up to U+FFFF, so programs that read the OpenAPI document understand it.
 * `hasFormatControl` finds the other format controls too.
 */
export const PLAIN_LINE =
  '^[^\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u0600-\\u0605\\u061c\\u06dd\\u070f\\u0890\\u0891\\u08e2\\u180e\\u200b' +
  '\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u2064\\u2066-\\u206f\\ufeff\\ufff9-\\ufffb]*$'

/** Returns whether the text contains a format control other than ZWJ and ZWNJ. */
export function hasFormatControl(text: string): boolean {
  return text.search(FORMAT_CONTROLS) >= 0
}

/** Returns the text without its format controls. ZWJ and ZWNJ stay. */
export function removeFormatControls(text: string): string {
  return text.replace(FORMAT_CONTROLS, '')
}

/**
 * Returns the longest beginning of the text that has at most `maxLength` code points and ends between two characters as
 * a reader sees them. For example, a letter keeps its accent. A single visible character that is longer than
 * `maxLength` is cut inside.
 */
export function cutText(text: string, maxLength: number): string {
  const codePoints = [...text]
  if (codePoints.length <= maxLength) return text
  const cut = codePoints.slice(0, maxLength).join('')
  const [last] = [...new Intl.Segmenter().segment(text)].filter(({ index }) => index <= cut.length).slice(-1)
  return text.slice(0, last!.index) || cut
}

/**
 * Returns a text that can stand in a sentence of another language. If the text contains a right-to-left letter,
 * Unicode's isolates enclose it, so it cannot change the order of the words after it.
 */
export function isolate(text: string): string {
  return RIGHT_TO_LEFT_LETTER.test(text) ? FIRST_STRONG_ISOLATE + text + POP_DIRECTIONAL_ISOLATE : text
}

/**
 * Trims only spaces and tabs. A line break at either end stays in the text. So the schema can refuse the text, and the
 * caller learns of the line break.
 */
export function trim(text: string): string {
  // A regular expression would search for the end of the text from each blank. In a body full of blanks, these searches
  // would take seconds.
  let [start, end] = [0, text.length]
  while (start < end && isBlank(text[start])) start += 1
  while (end > start && isBlank(text[end - 1])) end -= 1
  return text.slice(start, end)
}

function isBlank(character: string | undefined): boolean {
  return character === ' ' || character === '\t'
}
