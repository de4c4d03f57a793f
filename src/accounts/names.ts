import { cutText, hasFormatControl, isolate, removeFormatControls } from '../http/format/plain-text.ts'

/** The maximum length of a name in a notification or a mail, in code points. Profiles keep up to 100. */
const MAX_NAME_IN_TEXT = 40

// A letter that readers can see. The Hangul fillers are letters for Unicode, but they are invisible.
const VISIBLE_LETTER = /(?!\p{Default_Ignorable_Code_Point})\p{L}/u

// A part of a web or e-mail address. Mail programs and phones turn such a text into a link.
const ADDRESS = /:\/\/|www\.|@/i

const ONLY_LETTERS = /^(?:(?!\p{Default_Ignorable_Code_Point})[\p{L}\p{M} '’ʼ‐‑-])+$/u

/**
 * Returns whether a new account may have this name. The schema checks the length and the line breaks. Names that were
 * stored before this rule stay valid.
 */
export function isName(name: string): boolean {
  // The normal form turns the full-width spellings of `@`, `:` and `/` into the usual ones.
  return !hasFormatControl(name) && !ADDRESS.test(name.normalize('NFKC'))
}

/**
 * Returns whether a new account may have this first name. A first name appears alone in texts, so it needs a letter.
 */
export function isFirstName(name: string): boolean {
  return isName(name) && VISIBLE_LETTER.test(name)
}

/**
 * Returns a name as notifications show it: at most 40 characters, and isolated if it contains a right-to-left letter.
 * Removes the format controls that older accounts may have in their names.
 * @returns undefined if nothing visible remains, so the text must name an unknown player
 */
export function formatNameForText(name: string): string | undefined {
  const cut = cutText(removeFormatControls(name), MAX_NAME_IN_TEXT).trim()
  return cut === '' ? undefined : isolate(cut)
}

/**
 * Returns a name as mails show it. A stranger can sign up with any name and another person's address, and then the mail
 * delivers the stranger's words. So a mail shows only a name of letters, marks, spaces, hyphens and apostrophes, at
 * most 40 characters of it. Any other name becomes its first letter.
 * @returns undefined if the name contains no letter
 */
export function formatNameForMail(name: string): string | undefined {
  const normalized = name.normalize('NFC')
  if (!VISIBLE_LETTER.test(normalized)) return undefined
  if (ONLY_LETTERS.test(normalized)) return cutText(normalized, MAX_NAME_IN_TEXT).trim()
  return VISIBLE_LETTER.exec(normalized)![0]
}
