import type { Text } from '../language.ts'
import type { NotificationType } from '../notification-types.ts'
import type { Category } from '../notifications/catalogue.ts'

/** A sentence for each type that says when a user gets the notification. */
export const LABELS: Readonly<Record<NotificationType, Text>> = {
  game_joined: { fr: 'Un joueur rejoint votre partie', en: 'A player joins your game' },
  game_left: { fr: 'Un joueur quitte votre partie', en: 'A player leaves your game' },
  game_cancelled: { fr: 'Votre partie est annulée', en: 'Your game is cancelled' },
  game_full: { fr: 'Votre partie est complète', en: 'Your game is full' },
  game_reminder: { fr: 'Votre partie commence bientôt', en: 'Your game starts soon' },
  game_started: { fr: 'Votre partie commence', en: 'Your game starts' },
  score_submitted: { fr: 'Un joueur saisit le score de votre partie', en: 'A player enters the score of your game' },
  score_validated: { fr: 'Un joueur valide le score de votre partie', en: 'A player confirms the score of your game' },
  score_contested: {
    fr: 'Un joueur conteste le score de votre partie',
    en: 'A player contests the score of your game',
  },
  score_finalized: { fr: 'Le score de votre partie est définitif', en: 'The score of your game is final' },
}

export const CATEGORY_NAMES: Readonly<Record<Category, Text>> = {
  Matchs: { fr: 'Matchs', en: 'Games' },
  Scores: { fr: 'Scores', en: 'Scores' },
}
