import type { Language, Text } from '../language.ts'
import { type Clock, dateAndTime, relativeDateAndTime, timeOfDay } from './dates.ts'
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
export type Facts = Clock & {
  /** First name of who acted, plain text, inserted as it is. */
  actorName?: string
  startsAt?: Date
  /** Players in the game after the fact, 0 to 4. */
  playerCount?: number
  /** The score as the producer wrote it: "6-4 6-3". */
  sets?: string
}

/** What an actor is called whose name isn't known, or not any more. */
export const NOBODY: Text = { fr: 'Un joueur', en: 'A player' }

type Entry = Readonly<{
  category: Category
  title: Text
  message: Readonly<Record<Language, (facts: Facts) => string>>
}>

/** Category, title and message of every type. Template literals only: a name holding "$&" or "{date}" stays that name. */
export const CATALOGUE: Readonly<Record<NotificationType, Entry>> = {
  game_joined: {
    category: 'Matchs',
    title: { fr: 'Un joueur a rejoint la partie', en: 'A player joined' },
    message: {
      fr: facts => `${actor(facts, 'fr')} a rejoint la partie${ofDate(facts, 'fr')}${outOfFour(facts)}.`,
      en: facts => `${actor(facts, 'en')} joined the game${ofDate(facts, 'en')}${outOfFour(facts)}.`,
    },
  },
  game_left: {
    category: 'Matchs',
    title: { fr: "Une place s'est libérée", en: 'A spot opened up' },
    message: {
      fr: facts => `${actor(facts, 'fr')} a quitté la partie${ofDate(facts, 'fr')}.${spotsLeft(facts, 'fr')}`,
      en: facts => `${actor(facts, 'en')} left the game${ofDate(facts, 'en')}.${spotsLeft(facts, 'en')}`,
    },
  },
  game_cancelled: {
    category: 'Matchs',
    title: { fr: 'Partie annulée', en: 'Game cancelled' },
    message: {
      fr: facts => `${actor(facts, 'fr')} a annulé la partie${ofDate(facts, 'fr')}.`,
      en: facts => `${actor(facts, 'en')} cancelled the game${ofDate(facts, 'en')}.`,
    },
  },
  game_full: {
    category: 'Matchs',
    title: { fr: 'Partie complète', en: 'Game full' },
    message: {
      fr: facts => `Vous êtes 4 sur 4 pour la partie${ofDate(facts, 'fr')}.`,
      en: facts => `You are 4 of 4 for the game${ofDate(facts, 'en')}.`,
    },
  },
  game_reminder: {
    category: 'Matchs',
    title: { fr: 'Rappel de partie', en: 'Game reminder' },
    message: {
      fr: facts => `Votre partie commence ${when(facts, 'fr')}.`,
      en: facts => `Your game starts ${when(facts, 'en')}.`,
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
      fr: facts => `${actor(facts, 'fr')} a saisi ${score(facts, 'fr')}. Validez-le ou contestez-le.`,
      en: facts => `${actor(facts, 'en')} entered ${score(facts, 'en')}. Confirm or contest it.`,
    },
  },
  score_validated: {
    category: 'Scores',
    title: { fr: 'Score validé', en: 'Score confirmed' },
    message: {
      fr: facts => `${actor(facts, 'fr')} a validé ${score(facts, 'fr')}.`,
      en: facts => `${actor(facts, 'en')} confirmed ${score(facts, 'en')}.`,
    },
  },
  score_contested: {
    category: 'Scores',
    title: { fr: 'Score contesté', en: 'Score contested' },
    message: {
      fr: facts => `${actor(facts, 'fr')} conteste ${score(facts, 'fr')}.`,
      en: facts => `${actor(facts, 'en')} contests ${score(facts, 'en')}.`,
    },
  },
  score_finalized: {
    category: 'Scores',
    title: { fr: 'Score définitif', en: 'Final score' },
    message: {
      fr: facts => {
        const sets = facts.sets ? `${NBSP}: ${facts.sets}` : ''
        return `Le score de la partie${ofDate(facts, 'fr')} est définitif${sets}.`
      },
      en: facts => {
        const sets = facts.sets ? `: ${facts.sets}` : ''
        return `The score of the game${ofDate(facts, 'en')} is final${sets}.`
      },
    },
  },
}

/**
 * The title and message of one notification, in the recipient's language.
 * Throws RangeError for an invalid date or a time zone that does not exist.
 */
export function render(type: NotificationType, language: Language, facts: Facts): { title: string; message: string } {
  const { title, message } = CATALOGUE[type]
  return { title: title[language], message: message[language](facts) }
}

function actor({ actorName }: Facts, language: Language): string {
  return actorName || NOBODY[language]
}

function ofDate({ startsAt, now, timeZone }: Facts, language: Language): string {
  if (!startsAt) return ''
  return `${language === 'fr' ? ' du' : ' on'} ${dateAndTime(startsAt, language, { now, timeZone })}`
}

function when({ startsAt, now, timeZone }: Facts, language: Language): string {
  if (!startsAt) return language === 'fr' ? 'bientôt' : 'soon'
  return relativeDateAndTime(startsAt, language, { now, timeZone })
}

function outOfFour({ playerCount }: Facts): string {
  return playerCount === undefined ? '' : ` (${playerCount}/4)`
}

function spotsLeft({ playerCount }: Facts, language: Language): string {
  if (playerCount === undefined) return ''
  if (playerCount === 0) return language === 'fr' ? ' La partie est vide.' : ' The game is empty.'
  const spots = 4 - playerCount
  // A refill may be known before the leave it follows.
  if (spots <= 0) return language === 'fr' ? ' La partie est complète.' : ' The game is full.'
  if (language === 'fr') return ` Il reste ${spots} ${spots === 1 ? 'place' : 'places'}.`
  return ` ${spots} ${spots === 1 ? 'spot' : 'spots'} left.`
}

function score({ sets }: Facts, language: Language): string {
  if (language === 'fr') return sets ? `le score ${sets}` : 'le score'
  return sets || 'the score'
}
