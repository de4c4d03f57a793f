import type { Language, Text } from '../language.ts'
import type { NotificationType } from '../notification-types.ts'
import { timeOfDay } from '../time/time-of-day.ts'
import { NARROW_NBSP, NBSP } from '../typography.ts'
import { dateAndTime, type LocalTime, relativeDateAndTime } from './dates.ts'

/** The categories in the Category column of the specification's Events table. */
export type Category = 'Matchs' | 'Scores'

/**
 * The values that a text may mention. If a value other than the actor's name is unknown, the text omits the value and
 * the preposition before it.
 */
export type TextValues = LocalTime & {
  /** The first name of the actor, as `formatNameForText` returns it. */
  actorName?: string
  startsAt?: Date
  /** The number of players after the event, 0 to 4. */
  playerCount?: number
  /** The score as the producer wrote it, such as "6-4 6-3". */
  sets?: string
}

/** The text that replaces an actor's name if the name is unknown or the actor's account was deleted. */
export const UNKNOWN_ACTOR: Text = { fr: 'Un joueur', en: 'A player' }

type Values = Omit<TextValues, 'actorName'>
type Sentence = Readonly<Record<Language, (values: Values) => string>>

/**
 * The texts of one notification type. A message may contain the actor's name only at its beginning. With this rule, the
 * service can find and replace the name when the actor deletes their account. The types enforce the rule: a `Sentence`
 * function does not receive the name, so it cannot insert the name elsewhere.
 */
type Entry = Readonly<{ category: Category; title: Text }> &
  (
    | Readonly<{ message: Sentence }>
    /** The rest of a message that begins with the actor's name. */
    | Readonly<{ afterActor: Sentence }>
  )

/**
 * The texts of each notification type. Template literals insert a value unchanged. So if a score contains "$&" or
 * "{date}", the message contains these characters.
 */
export const CATALOGUE: Readonly<Record<NotificationType, Entry>> = {
  game_joined: {
    category: 'Matchs',
    title: { fr: 'Un joueur a rejoint la partie', en: 'A player joined' },
    afterActor: {
      fr: values => ` a rejoint la partie${datePhrase(values, 'fr')}${outOfFour(values)}.`,
      en: values => ` joined the game${datePhrase(values, 'en')}${outOfFour(values)}.`,
    },
  },
  game_left: {
    category: 'Matchs',
    title: { fr: "Une place s'est libérée", en: 'A spot opened up' },
    afterActor: {
      fr: values => ` a quitté la partie${datePhrase(values, 'fr')}.${spotsLeft(values, 'fr')}`,
      en: values => ` left the game${datePhrase(values, 'en')}.${spotsLeft(values, 'en')}`,
    },
  },
  game_cancelled: {
    category: 'Matchs',
    title: { fr: 'Partie annulée', en: 'Game cancelled' },
    afterActor: {
      fr: values => ` a annulé la partie${datePhrase(values, 'fr')}.`,
      en: values => ` cancelled the game${datePhrase(values, 'en')}.`,
    },
  },
  game_full: {
    category: 'Matchs',
    title: { fr: 'Partie complète', en: 'Game full' },
    message: {
      fr: values => `Vous êtes 4 sur 4 pour la partie${datePhrase(values, 'fr')}.`,
      en: values => `You are 4 of 4 for the game${datePhrase(values, 'en')}.`,
    },
  },
  game_reminder: {
    category: 'Matchs',
    title: { fr: 'Rappel de partie', en: 'Game reminder' },
    message: {
      fr: values => `Votre partie commence ${startPhrase(values, 'fr')}.`,
      en: values => `Your game starts ${startPhrase(values, 'en')}.`,
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
    afterActor: {
      fr: values => ` a saisi ${scorePhrase(values, 'fr')}. Validez-le ou contestez-le.`,
      en: values => ` entered ${scorePhrase(values, 'en')}. Confirm or contest it.`,
    },
  },
  score_validated: {
    category: 'Scores',
    title: { fr: 'Score validé', en: 'Score confirmed' },
    afterActor: {
      fr: values => ` a validé ${scorePhrase(values, 'fr')}.`,
      en: values => ` confirmed ${scorePhrase(values, 'en')}.`,
    },
  },
  score_contested: {
    category: 'Scores',
    title: { fr: 'Score contesté', en: 'Score contested' },
    afterActor: {
      fr: values => ` conteste ${scorePhrase(values, 'fr')}.`,
      en: values => ` contests ${scorePhrase(values, 'en')}.`,
    },
  },
  score_finalized: {
    category: 'Scores',
    title: { fr: 'Score définitif', en: 'Final score' },
    message: {
      fr: values => {
        const sets = values.sets ? `${NBSP}: ${values.sets}` : ''
        return `Le score de la partie${datePhrase(values, 'fr')} est définitif${sets}.`
      },
      en: values => {
        const sets = values.sets ? `: ${values.sets}` : ''
        return `The score of the game${datePhrase(values, 'en')} is final${sets}.`
      },
    },
  },
}

export type RenderedText = {
  title: string
  message: string
  /**
   * The position of the actor's name in the message, in code points, because the function `substr` of PostgreSQL counts
   * code points. Null if the message does not contain the name.
   */
  actorName: { start: 0; length: number } | null
}

/**
 * Renders the title and message of a notification.
 * @throws RangeError for an invalid date or an unknown time zone
 */
export function render(type: NotificationType, language: Language, { actorName, ...values }: TextValues): RenderedText {
  const entry = CATALOGUE[type]
  const title = entry.title[language]
  if ('message' in entry) return { title, message: entry.message[language](values), actorName: null }
  const rest = entry.afterActor[language](values)
  if (!actorName) return { title, message: UNKNOWN_ACTOR[language] + rest, actorName: null }
  return { title, message: actorName + rest, actorName: { start: 0, length: [...actorName].length } }
}

function datePhrase({ startsAt, now, timeZone }: Values, language: Language): string {
  if (!startsAt) return ''
  return `${language === 'fr' ? ' du' : ' on'} ${dateAndTime(startsAt, language, { now, timeZone })}`
}

function startPhrase({ startsAt, now, timeZone }: Values, language: Language): string {
  if (!startsAt) return language === 'fr' ? 'bientôt' : 'soon'
  return relativeDateAndTime(startsAt, language, { now, timeZone })
}

function outOfFour({ playerCount }: Values): string {
  return playerCount === undefined ? '' : ` (${playerCount}/4)`
}

function spotsLeft({ playerCount }: Values, language: Language): string {
  if (playerCount === undefined) return ''
  if (playerCount === 0) return language === 'fr' ? ' La partie est vide.' : ' The game is empty.'
  const spots = 4 - playerCount
  // The event about a player who left may arrive after the event about the player who took the free spot. In this case,
  // no spot is free.
  if (spots <= 0) return language === 'fr' ? ' La partie est complète.' : ' The game is full.'
  if (language === 'fr') return ` Il reste ${spots} ${spots === 1 ? 'place' : 'places'}.`
  return ` ${spots} ${spots === 1 ? 'spot' : 'spots'} left.`
}

function scorePhrase({ sets }: Values, language: Language): string {
  if (language === 'fr') return sets ? `le score ${sets}` : 'le score'
  return sets || 'the score'
}
