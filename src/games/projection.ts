import type { GameEvent } from './parse-event.ts'

/** The state of a game after the events so far. Instants are in the spelling of `canonicalInstant`. */
export type Game = {
  id: number
  creatorId: number | null
  playerIds: readonly number[]
  startsAt: string | null
  place: string | null
  /** The `time` of the newest event applied. Null if the service knows the game only from a score event. */
  eventTime: string | null
  /** The `time` of the event that announced the current four as full. Null if that is not announced. */
  fullSince: string | null
  cancelled: boolean
}

/**
 * Returns the first state of a game, before any game event is applied: its `eventTime` is null, so each game event is
 * newer.
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
 * Returns the game after an event. "Score events make a game known but change nothing of one already known". Of the
 * other events the one with the latest time wins, "among equal times the later arrival". "A cancellation is final
 * whatever its `time`": nothing unsets the flag. Apart from the flag the state still follows the latest time, so the
 * order of arrival does not matter.
 * @returns the same object if nothing changed
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

/** Returns whether a newer event was applied before. */
function isLate(game: Game, event: GameEvent): boolean {
  return game.eventTime !== null && event.time < game.eventTime
}

const TYPES_THAT_FILL = ['game_joined', 'game_created', 'game_updated', 'game_full']

/**
 * Decides whether the game is full. "`game_full` follows by itself from the join, creation or update that makes four
 * [...]; a producer's own `game_full` for the same filling adds nothing. A leave and a refill is a new fact."
 * @param game the state after the event, `fullSince` aside
 * @returns the new `fullSince`. If it is neither null nor the old one, `game_full` is to be announced
 */
function findFullSince(before: Game, game: Game, event: GameEvent): string | null {
  // A producer's `game_full` counts even if it does not name four players.
  const isFull = event.playerIds.length === 4 || event.type === 'game_full'
  const filledAt = isFull && TYPES_THAT_FILL.includes(event.type) ? event.time : null
  if (isLate(before, event)) {
    if (game.playerIds.length < 4) return before.fullSince
    if (isFull) return before.fullSince ?? filledAt
    // There were fewer than four between the announced four and the current four. So the current four are a refill.
    return before.fullSince !== null && before.fullSince < event.time ? game.eventTime : before.fullSince
  }
  if (!isFull) return null
  // Another player is among the four. The leave in between is late, or the producer never reported it.
  const isRefilled = before.playerIds.length === 4 && game.playerIds.some(id => !before.playerIds.includes(id))
  return isRefilled ? filledAt : (before.fullSince ?? filledAt)
}
