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
  /**
   * The latest `time` of the applied events, not counting score events. Null if all events so far were score events.
   */
  eventTime: string | null
  /**
   * The `time` of the event that made the game full with the current four players. Null unless `game_full` was
   * announced for these four players.
   */
  fullSince: string | null
  cancelled: boolean
}

/**
 * Returns the state of a game as its first event reports it. In this state `eventTime` is null, so `applyEvent` never
 * treats an event as older than this state.
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
 * Returns the state of a game after an event. A score event does not change the state. Among all other events, the
 * event with the latest `time` determines the state. If several events have this `time`, the event that arrived last
 * determines the state. A cancellation takes effect even if its `time` is earlier than the `time` of another event, and
 * no later event resets `cancelled`. After a cancellation, newer events still change all members of the state except
 * `cancelled` and `fullSince`.
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

const TYPES_THAT_MAKE_FULL = ['game_joined', 'game_created', 'game_updated', 'game_full']

/**
 * Returns the `fullSince` of a game after an event. A game becomes full with an event `game_joined`, `game_created` or
 * `game_updated` that lists four players, or with an event `game_full`. The service then announces `game_full`, but
 * only once for the same four players. So if a producer reports `game_full` after this announcement, the service does
 * not announce it a second time. If a player leaves and another player joins, the service announces `game_full` once
 * more.
 * @param game the state after the event. This function ignores `game.fullSince`
 * @returns the new `fullSince`, which may be null. The caller announces `game_full` if the result is a time and differs
 * from `before.fullSince`
 */
function findFullSince(before: Game, game: Game, event: GameEvent): string | null {
  // If the producer reports `game_full`, the game counts as full even if the event lists fewer than four players.
  const isFull = event.playerIds.length === 4 || event.type === 'game_full'
  const filledAt = isFull && TYPES_THAT_MAKE_FULL.includes(event.type) ? event.time : null
  if (isLate(before, event)) {
    if (game.playerIds.length < 4) return before.fullSince
    if (isFull) return before.fullSince ?? filledAt
    // The late event lists fewer than four players. If its `time` is after `fullSince`, a player left after the game
    // had become full. In the newer state the game has four players. So another player has joined, and the game is full
    // again.
    return before.fullSince !== null && before.fullSince < event.time ? game.eventTime : before.fullSince
  }
  if (!isFull) return null
  // A game is refilled if it had four players before the event, and at least one player is new after the event. So a
  // player has left, but the event `game_left` has not arrived yet, or the producer never reported it.
  const isRefilled = before.playerIds.length === 4 && game.playerIds.some(id => !before.playerIds.includes(id))
  return isRefilled ? filledAt : (before.fullSince ?? filledAt)
}
