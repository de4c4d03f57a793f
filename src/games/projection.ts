import type { GameEvent } from './parse-event.ts'

/**
 * The state of a game, computed from the events that have been applied so far. Instants have the format of
 * `canonicalInstant`.
 */
export type Game = {
  id: number
  creatorId: number | null
  playerIds: readonly number[]
  startsAt: string | null
  place: string | null
  /** The `time` of the newest applied event. Null if the game is known only from score events. */
  eventTime: string | null
  /**
   * The `time` of the event that made the game full with the current four players. Null unless `game_full` was
   * announced for these four players.
   */
  fullSince: string | null
  cancelled: boolean
}

/**
 * Returns the state of a game as its first event reports it. `eventTime` is null, so every game event counts as newer.
 */
export function projectFirst(event: GameEvent): Game {
  return {
    id: event.gameId,
    creatorId: event.creatorId,
    playerIds: event.playerIds,
    startsAt: event.startsAt ?? null,
    place: event.place ?? null,
    eventTime: null,
    fullSince: null,
    cancelled: false,
  }
}

/**
 * Returns the game after an event. "Score events make a game known but change nothing of one already known". Among the
 * other events, the event with the latest `time` determines the state, "among equal times the later arrival". "A
 * cancellation is final whatever its `time`", so no event resets `cancelled`. In a cancelled game, all other members
 * still take their values from the event with the latest `time`.
 * @returns `before` itself if nothing changed
 */
export function applyEvent(before: Game, event: GameEvent): Game {
  if (isScoreEvent(event)) return before
  const cancelled = before.cancelled || event.type === 'game_cancelled'
  const state = isLate(before, event) ? before : { ...projectFirst(event), eventTime: event.time }
  const fullSince = cancelled ? before.fullSince : findFullSince(before, state, event)
  if (state === before && cancelled === before.cancelled && fullSince === before.fullSince) return before
  return { ...state, fullSince, cancelled }
}

/** Returns whether an event is about the score of a game. Such an event does not change the game. */
export function isScoreEvent(event: Pick<GameEvent, 'type'>): boolean {
  return event.type.startsWith('score_')
}

/** Returns whether the game already has the state of a newer event. */
function isLate(game: Game, event: GameEvent): boolean {
  return game.eventTime !== null && event.time < game.eventTime
}

const FILLING_TYPES = ['game_joined', 'game_created', 'game_updated', 'game_full']

/**
 * Returns the `fullSince` of a game after an event. "`game_full` follows by itself from the join, creation or update
 * that makes four [...]; a producer's own `game_full` for the same filling adds nothing. A leave and a refill is a new
 * fact."
 * @param game the state after the event. Its `fullSince` is not used
 * @returns a time or null. If the time differs from `before.fullSince`, the caller announces `game_full`
 */
function findFullSince(before: Game, game: Game, event: GameEvent): string | null {
  // A producer's `game_full` counts even if it lists fewer than four players.
  const isFull = event.playerIds.length === 4 || event.type === 'game_full'
  const filledAt = isFull && FILLING_TYPES.includes(event.type) ? event.time : null
  if (isLate(before, event)) {
    if (game.playerIds.length < 4) return before.fullSince
    if (isFull) return before.fullSince ?? filledAt
    // The late event shows that a player left after `game_full` was announced. So another player has joined since then,
    // and the game is full again.
    return before.fullSince !== null && before.fullSince < event.time ? game.eventTime : before.fullSince
  }
  if (!isFull) return null
  // One of the four players is new. The event in which a previous player left has not arrived yet, or it was never
  // reported.
  const isRefilled = before.playerIds.length === 4 && game.playerIds.some(id => !before.playerIds.includes(id))
  return isRefilled ? filledAt : (before.fullSince ?? filledAt)
}
