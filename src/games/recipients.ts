import type { NotificationType } from '../notifications/catalogue.ts'
import type { GameEvent } from './parse-event.ts'
import { type Game, isScoreEvent } from './projection.ts'

/** That these people are told of a fact, under a type. */
export type Announcement = {
  event: Pick<GameEvent, 'key' | 'type' | 'gameId' | 'actorId' | 'startsAt' | 'score'>
  type: NotificationType
  userIds: number[]
  /** What is known of the game after the fact; of a late fact that is more than the fact itself says. */
  game: Game
  /** What may be told but once of a game, whoever reports it. */
  onceKey?: string
}

/** Whom a fact is told to; each person once a type. */
export function announcementsFor(before: Game, game: Game, event: GameEvent): Announcement[] {
  // "no later fact revives the game or notifies of it (scores aside)"
  if (before.cancelled && !isScoreEvent(event)) return []
  const told: Announcement[] = []
  const tell = (type: NotificationType, userIds: number[], onceKey?: string) => {
    told.push({ event, type, userIds, game, ...(onceKey && { onceKey }) })
  }
  switch (event.type) {
    case 'game_created':
    case 'game_updated':
    case 'game_full':
      break
    case 'game_reminder':
    case 'game_started':
      // A game that has moved since neither starts now nor is to be reminded of.
      if (event.startsAt === game.startsAt) {
        tell(event.type, unique(game.playerIds), `${event.type.slice('game_'.length)}@${event.startsAt}`)
      }
      break
    default:
      tell(event.type, findRecipients(event, before, game))
  }
  if (game.fullSince !== null && game.fullSince !== before.fullSince) tell('game_full', unique(game.playerIds))
  return told
}

/** The contract's table. Who joins or leaves late is told to the players of now. */
function findRecipients(event: GameEvent, before: Game, game: Game): number[] {
  const { actorId, byId, playerIds } = event
  switch (event.type) {
    case 'game_joined':
    case 'game_left': {
      const others = unique([game.creatorId, ...game.playerIds], actorId, byId)
      // "who did it for the actor (a creator removing a player); the actor then is told too"
      return byId !== undefined && byId !== actorId ? unique([...others, actorId]) : others
    }
    case 'game_cancelled':
      return unique([...before.playerIds, ...playerIds, game.creatorId], actorId)
    case 'score_finalized':
      return unique(playerIds)
    default:
      return unique(playerIds, actorId)
  }
}

/** The types whose message begins with the name of who acted. */
export function namesActor(type: NotificationType): boolean {
  return !['game_full', 'game_reminder', 'game_started', 'score_finalized'].includes(type)
}

/** Each once; a creator who deleted their account is null, and whom the fact doesn't name undefined. */
function unique(ids: readonly (number | null | undefined)[], ...excluded: (number | undefined)[]): number[] {
  return [...new Set(ids)].filter(id => id !== null && id !== undefined).filter(id => !excluded.includes(id))
}
