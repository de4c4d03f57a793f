import type { Person } from '../accounts/users.ts'
import { timestamp } from '../http/format/timestamp.ts'
import type { Language } from '../language.ts'
import { render } from '../notifications/catalogue.ts'
import type { LocalTime } from '../notifications/dates.ts'
import type { NewNotification } from '../notifications/notifications.ts'
import { isScoreEvent } from './projection.ts'
import { type Announcement, namesActor } from './recipients.ts'

type Text = Pick<NewNotification, 'title' | 'message'>

/** The notifications to write: a row for each recipient whom we know, in their language. */
export function renderNotifications(
  told: readonly Announcement[],
  people: ReadonlyMap<number, Person>,
  clock: LocalTime,
): NewNotification[] {
  return told.flatMap(announcement => {
    const { event, type } = announcement
    const actorName = namesActor(type) && event.actorId !== undefined ? people.get(event.actorId)?.firstName : undefined
    const data = notificationData(announcement)
    const texts = new Map<Language, Text>()
    return announcement.userIds
      .filter(id => people.has(id))
      .map(userId => {
        const { locale } = people.get(userId)!
        const text = texts.get(locale) ?? renderText(announcement, locale, actorName, clock)
        texts.set(locale, text)
        return {
          userId,
          type,
          ...text,
          data,
          dedupKey: `${type}:${event.key}`,
          actorId: event.actorId ?? null,
          locale,
          // As PostgreSQL's char_length counts: by code points.
          actorNameLength: actorName === undefined ? 0 : [...actorName].length,
        }
      })
  })
}

function renderText(
  { event, type, game }: Announcement,
  language: Language,
  actorName: string | undefined,
  clock: LocalTime,
): Text {
  // The game of a score may be known without its date, or better than the score's reporter knew it.
  const startsAt = isScoreEvent(event) ? (game.startsAt ?? event.startsAt) : game.startsAt
  return render(type, language, {
    ...clock,
    ...(actorName !== undefined && { actorName }),
    ...(startsAt && { startsAt: new Date(startsAt) }),
    ...(event.score && { sets: event.score.sets }),
    playerCount: game.playerIds.length,
  })
}

function notificationData({ event, game }: Announcement): Record<string, unknown> {
  return {
    game_id: event.gameId,
    ...(event.actorId !== undefined && { actor_id: event.actorId }),
    ...(event.score?.id !== undefined && { score_id: event.score.id }),
    ...(!isScoreEvent(event) && game.startsAt && { starts_at: timestamp(new Date(game.startsAt)) }),
  }
}
