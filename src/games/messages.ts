import type { Person } from '../accounts/users.ts'
import { timestamp } from '../http/format/timestamp.ts'
import type { Language } from '../language.ts'
import { render } from '../notifications/catalogue.ts'
import type { Clock } from '../notifications/dates.ts'
import type { NewNotification } from '../notifications/notifications.ts'
import { isScore } from './projection.ts'
import { namesActor, type Telling } from './recipients.ts'

type Text = Pick<NewNotification, 'title' | 'message'>

/** The notifications to write: a row for each recipient whom we know, in their language. */
export function compose(
  told: readonly Telling[],
  people: ReadonlyMap<number, Person>,
  clock: Clock,
): NewNotification[] {
  return told.flatMap(telling => {
    const { fact, type } = telling
    const actorName = namesActor(type) && fact.actorId !== undefined ? people.get(fact.actorId)?.firstName : undefined
    const data = dataOf(telling)
    const texts = new Map<Language, Text>()
    return telling.userIds
      .filter(id => people.has(id))
      .map(userId => {
        const { locale } = people.get(userId)!
        const text = texts.get(locale) ?? textOf(telling, locale, actorName, clock)
        texts.set(locale, text)
        return {
          userId,
          type,
          ...text,
          data,
          fact: `${type}:${fact.key}`,
          actorId: fact.actorId ?? null,
          locale,
          // As PostgreSQL's char_length counts: by code points.
          actorNameLength: actorName === undefined ? 0 : [...actorName].length,
        }
      })
  })
}

function textOf({ fact, type, game }: Telling, language: Language, actorName: string | undefined, clock: Clock): Text {
  // The game of a score may be known without its date, or better than the score's reporter knew it.
  const startsAt = isScore(fact) ? (game.startsAt ?? fact.startsAt) : game.startsAt
  return render(type, language, {
    ...clock,
    ...(actorName !== undefined && { actorName }),
    ...(startsAt && { startsAt: new Date(startsAt) }),
    ...(fact.score && { sets: fact.score.sets }),
    playerCount: game.playerIds.length,
  })
}

function dataOf({ fact, game }: Telling): Record<string, unknown> {
  return {
    game_id: fact.gameId,
    ...(fact.actorId !== undefined && { actor_id: fact.actorId }),
    ...(fact.score?.id !== undefined && { score_id: fact.score.id }),
    ...(!isScore(fact) && game.startsAt && { starts_at: timestamp(new Date(game.startsAt)) }),
  }
}
