import type { Notification } from '../api.ts'
import { ENGLISH_TITLES } from './english-titles.ts'
import type { Language } from './texts.ts'

/**
 * Returns the language in which the service has stored a notification. It may differ from the language of the inbox,
 * because the stored texts do not change when the user changes the language.
 */
export function findStoredLanguage({ type, title }: Pick<Notification, 'type' | 'title'>): Language {
  return ENGLISH_TITLES[type] === title ? 'en' : 'fr'
}
