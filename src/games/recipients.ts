import type { NotificationType } from '../notification-types.ts'
import type { GameAnnouncement } from './announce.ts'
import { producerReminderKey, startedKey } from './once-key.ts'
import type { GameEvent } from './parse-event.ts'
import { type Game, isScoreEvent } from './projection.ts'

/**
 * Returns the announcements that an event causes. The result contains each notification type at most once. An
 * announcement contains each recipient at most once.
 */
export function announcementsFor(before: Game, game: Game, event: GameEvent): GameAnnouncement[] {
  // After the cancellation of a game, the service announces only the score events of this game.
  if (before.cancelled && !isScoreEvent(event)) return []
  const announcements: GameAnnouncement[] = []
  const add = (type: NotificationType, recipientIds: number[], more: Pick<GameAnnouncement, 'onceKey'> = {}) => {
    announcements.push({ event, type, recipientIds, game, ...more })
  }
  switch (event.type) {
    case 'game_created':
    case 'game_updated':
    case 'game_full':
      break
    case 'game_reminder':
    case 'game_started':
      // If a game has moved, the service does not announce a reminder or a start for the earlier start time.
      if (event.startsAt === game.startsAt) {
        const onceKey = event.type === 'game_started' ? startedKey(game) : producerReminderKey(game)
        add(event.type, unique(game.playerIds), { onceKey })
      }
      break
    default:
      add(event.type, findRecipients({ ...event, type: event.type }, before, game))
  }
  if (game.fullSince !== null && game.fullSince !== before.fullSince) add('game_full', unique(game.playerIds))
  return announcements
}

/** The notification types whose recipients `findRecipients` determines. */
type TypeInTable = Exclude<NotificationType, 'game_full' | 'game_reminder' | 'game_started'>

/**
 * Returns the recipients according to the specification's Events table. For `game_joined` and `game_left`, the players
 * come from the current state of the game, even if the event arrived late. The compiler reports an error if a type has
 * no case in the `switch` below.
 */
function findRecipients(event: GameEvent & { type: TypeInTable }, before: Game, game: Game): number[] {
  const { actorId, byId, playerIds } = event
  switch (event.type) {
    case 'game_joined':
    case 'game_left': {
      const others = unique([game.creatorId, ...game.playerIds], actorId, byId)
      // If another user made the change, the actor gets a notification too. For example, the creator removed the actor
      // from the game.
      return byId !== undefined && byId !== actorId ? unique([...others, actorId]) : others
    }
    case 'game_cancelled':
      return unique([...before.playerIds, ...playerIds, game.creatorId], actorId)
    case 'score_submitted':
    case 'score_validated':
    case 'score_contested':
      return unique(playerIds, actorId)
    case 'score_finalized':
      return unique(playerIds)
  }
}

/**
 * Returns each id once, without the excluded ids. Drops null and undefined. Null stands for a creator who deleted their
 * account, and undefined for an actor whom the event omits.
 */
function unique(ids: readonly (number | null | undefined)[], ...excluded: (number | undefined)[]): number[] {
  return [...new Set(ids)].filter(id => id !== null && id !== undefined).filter(id => !excluded.includes(id))
}
