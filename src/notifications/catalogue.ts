import type { Language, Text } from '../language.ts'
import { dateAndTime, type LocalTime, relativeDateAndTime, timeOfDay } from './dates.ts'
import { NARROW_NBSP, NBSP } from './typography.ts'

/** The specification's Events table, in its order. The list is closed. */
export const NOTIFICATION_TYPES = [
  'game_joined',
  'game_left',
  'game_cancelled',
  'game_full',
  'game_reminder',
  'game_started',
  'score_submitted',
  'score_validated',
  'score_contested',
  'score_finalized',
] as const

export type NotificationType = (typeof NOTIFICATION_TYPES)[number]

/** The Category column of the specification's Events table; literals, not translated. */
export type Category = 'Matchs' | 'Scores'

/** What a text may speak of. Whatever is not known is left out of the sentence together with its preposition. */
export type TextValues = LocalTime & {
  /** First name of who acted, plain text, inserted as it is. */
  actorName?: string
  startsAt?: Date
  /** Players in the game after the fact, 0 to 4. */
  playerCount?: number
  /** The score as the producer wrote it: "6-4 6-3". */
  sets?: string
}

/** What an actor is called whose name isn't known, or not any more. */
export const UNKNOWN_ACTOR: Text = { fr: 'Un joueur', en: 'A player' }

type Entry = Readonly<{
  category: Category
  title: Text
  message: Readonly<Record<Language, (events: TextValues) => string>>
}>

/** Category, title and message of every type. Template literals only: a name holding "$&" or "{date}" stays that name. */
export const CATALOGUE: Readonly<Record<NotificationType, Entry>> = {
  game_joined: {
    category: 'Matchs',
    title: { fr: 'Un joueur a rejoint la partie', en: 'A player joined' },
    message: {
      fr: events => `${actor(events, 'fr')} a rejoint la partie${ofDate(events, 'fr')}${outOfFour(events)}.`,
      en: events => `${actor(events, 'en')} joined the game${ofDate(events, 'en')}${outOfFour(events)}.`,
    },
  },
  game_left: {
    category: 'Matchs',
    title: { fr: "Une place s'est libérée", en: 'A spot opened up' },
    message: {
      fr: events => `${actor(events, 'fr')} a quitté la partie${ofDate(events, 'fr')}.${spotsLeft(events, 'fr')}`,
      en: events => `${actor(events, 'en')} left the game${ofDate(events, 'en')}.${spotsLeft(events, 'en')}`,
    },
  },
  game_cancelled: {
    category: 'Matchs',
    title: { fr: 'Partie annulée', en: 'Game cancelled' },
    message: {
      fr: events => `${actor(events, 'fr')} a annulé la partie${ofDate(events, 'fr')}.`,
      en: events => `${actor(events, 'en')} cancelled the game${ofDate(events, 'en')}.`,
    },
  },
  game_full: {
    category: 'Matchs',
    title: { fr: 'Partie complète', en: 'Game full' },
    message: {
      fr: events => `Vous êtes 4 sur 4 pour la partie${ofDate(events, 'fr')}.`,
      en: events => `You are 4 of 4 for the game${ofDate(events, 'en')}.`,
    },
  },
  game_reminder: {
    category: 'Matchs',
    title: { fr: 'Rappel de partie', en: 'Game reminder' },
    message: {
      fr: events => `Votre partie commence ${when(events, 'fr')}.`,
      en: events => `Your game starts ${when(events, 'en')}.`,
    },
  },
  game_started: {
    category: 'Matchs',
    title: { fr: 'La partie a commencé', en: 'Game on' },
    message: {
      fr: ({ startsAt, timeZone }) => {
        const hour = startsAt ? ` de ${timeOfDay(startsAt, 'fr', timeZone)}` : ''
        return `Votre partie${hour} a commencé. Bon match${NARROW_NBSP}!`
      },
      en: ({ startsAt, timeZone }) => {
        const hour = startsAt ? `${timeOfDay(startsAt, 'en', timeZone)} ` : ''
        return `Your ${hour}game has started. Enjoy!`
      },
    },
  },
  score_submitted: {
    category: 'Scores',
    title: { fr: 'Score à valider', en: 'Score to confirm' },
    message: {
      fr: events => `${actor(events, 'fr')} a saisi ${score(events, 'fr')}. Validez-le ou contestez-le.`,
      en: events => `${actor(events, 'en')} entered ${score(events, 'en')}. Confirm or contest it.`,
    },
  },
  score_validated: {
    category: 'Scores',
    title: { fr: 'Score validé', en: 'Score confirmed' },
    message: {
      fr: events => `${actor(events, 'fr')} a validé ${score(events, 'fr')}.`,
      en: events => `${actor(events, 'en')} confirmed ${score(events, 'en')}.`,
    },
  },
  score_contested: {
    category: 'Scores',
    title: { fr: 'Score contesté', en: 'Score contested' },
    message: {
      fr: events => `${actor(events, 'fr')} conteste ${score(events, 'fr')}.`,
      en: events => `${actor(events, 'en')} contests ${score(events, 'en')}.`,
    },
  },
  score_finalized: {
    category: 'Scores',
    title: { fr: 'Score définitif', en: 'Final score' },
    message: {
      fr: events => {
        const sets = events.sets ? `${NBSP}: ${events.sets}` : ''
        return `Le score de la partie${ofDate(events, 'fr')} est définitif${sets}.`
      },
      en: events => {
        const sets = events.sets ? `: ${events.sets}` : ''
        return `The score of the game${ofDate(events, 'en')} is final${sets}.`
      },
    },
  },
}

/**
 * The title and message of one notification, in the recipient's language.
 * Throws RangeError for an invalid date or a time zone that does not exist.
 */
export function render(
  type: NotificationType,
  language: Language,
  events: TextValues,
): { title: string; message: string } {
  const { title, message } = CATALOGUE[type]
  return { title: title[language], message: message[language](events) }
}

function actor({ actorName }: TextValues, language: Language): string {
  return actorName || UNKNOWN_ACTOR[language]
}

function ofDate({ startsAt, now, timeZone }: TextValues, language: Language): string {
  if (!startsAt) return ''
  return `${language === 'fr' ? ' du' : ' on'} ${dateAndTime(startsAt, language, { now, timeZone })}`
}

function when({ startsAt, now, timeZone }: TextValues, language: Language): string {
  if (!startsAt) return language === 'fr' ? 'bientôt' : 'soon'
  return relativeDateAndTime(startsAt, language, { now, timeZone })
}

function outOfFour({ playerCount }: TextValues): string {
  return playerCount === undefined ? '' : ` (${playerCount}/4)`
}

function spotsLeft({ playerCount }: TextValues, language: Language): string {
  if (playerCount === undefined) return ''
  if (playerCount === 0) return language === 'fr' ? ' La partie est vide.' : ' The game is empty.'
  const spots = 4 - playerCount
  // A refill may be known before the leave it follows.
  if (spots <= 0) return language === 'fr' ? ' La partie est complète.' : ' The game is full.'
  if (language === 'fr') return ` Il reste ${spots} ${spots === 1 ? 'place' : 'places'}.`
  return ` ${spots} ${spots === 1 ? 'spot' : 'spots'} left.`
}

function score({ sets }: TextValues, language: Language): string {
  if (language === 'fr') return sets ? `le score ${sets}` : 'le score'
  return sets || 'the score'
}
