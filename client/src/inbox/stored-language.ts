import type { Notification } from '../api.ts'
import type { Language } from './texts.ts'

/** The English titles of all types of notification, as `src/notifications/catalogue.ts` has them. */
const ENGLISH_TITLES: Record<Notification['type'], string> = {
  game_joined: 'A player joined',
  game_left: 'A spot opened up',
  game_cancelled: 'Game cancelled',
  game_full: 'Game full',
  game_reminder: 'Game reminder',
  game_started: 'Game on',
  score_submitted: 'Score to confirm',
  score_validated: 'Score confirmed',
  score_contested: 'Score contested',
  score_finalized: 'Final score',
}

/**
 * Returns the language in which the service has stored a notification. It may differ from the language of the inbox,
 * because the stored texts do not change when the user changes the language.
 */
export function findStoredLanguage({ type, title }: Pick<Notification, 'type' | 'title'>): Language {
  return ENGLISH_TITLES[type] === title ? 'en' : 'fr'
}
