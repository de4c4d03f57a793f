import type { NotificationType } from '../notifications/catalogue.ts'
import type { Fact } from './parse-event.ts'
import { type Game, isScore } from './projection.ts'

/** That these people are told of a fact, under a type. */
export type Telling = {
  fact: Pick<Fact, 'key' | 'type' | 'gameId' | 'actorId' | 'startsAt' | 'score'>
  type: NotificationType
  userIds: number[]
  /** What is known of the game after the fact; of a late fact that is more than the fact itself says. */
  game: Game
  /** What may be told but once of a game, whoever reports it. */
  notice?: string
}

/** Whom a fact is told to; each person once a type. */
export function tellings(before: Game, game: Game, fact: Fact): Telling[] {
  // "no later fact revives the game or notifies of it (scores aside)"
  if (before.cancelled && !isScore(fact)) return []
  const told: Telling[] = []
  const tell = (type: NotificationType, userIds: number[], notice?: string) => {
    told.push({ fact, type, userIds, game, ...(notice && { notice }) })
  }
  switch (fact.type) {
    case 'game_created':
    case 'game_updated':
    case 'game_full':
      break
    case 'game_reminder':
    case 'game_started':
      // A game that has moved since neither starts now nor is to be reminded of.
      if (fact.startsAt === game.startsAt) {
        tell(fact.type, unique(game.playerIds), `${fact.type.slice('game_'.length)}@${fact.startsAt}`)
      }
      break
    default:
      tell(fact.type, recipients(fact, before, game))
  }
  if (game.filledAt !== null && game.filledAt !== before.filledAt) tell('game_full', unique(game.playerIds))
  return told
}

/** The contract's table. Who joins or leaves late is told to the players of now. */
function recipients(fact: Fact, before: Game, game: Game): number[] {
  const { actorId, byId, playerIds } = fact
  switch (fact.type) {
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
