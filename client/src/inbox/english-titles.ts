// This file is generated: npm run generate
import type { Notification } from '../api.ts'

/** The English title of each type of notification. */
export const ENGLISH_TITLES: Record<Notification['type'], string> = {
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
