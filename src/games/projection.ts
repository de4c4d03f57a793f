import type { GameEvent } from './parse-event.ts'

/** What is known of a game. Instants are in their canonical spelling. */
export type Game = {
  id: number
  creatorId: number | null
  playerIds: readonly number[]
  startsAt: string | null
  place: string | null
  /** The time of the newest fact applied; null while only a score has made the game known. */
  eventTime: string | null
  /** The time of the fact by which the present four were told that they are; null while nobody was. */
  fullSince: string | null
  cancelled: boolean
}

/** A game that is heard of for the first time, as though by a score: any game event then is newer than what is known. */
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
 * The game after a fact. "Score events make a game known but change nothing of one already known"; of the others the one
 * with the latest time stands, "among equal times the later arrival". "A cancellation is final whatever its `time`": it is
 * a flag that nothing takes away, and beside it the state goes on following the latest time, so that the order of arrival
 * makes no difference.
 * @returns the same object when nothing changed
 */
export function applyEvent(before: Game, event: GameEvent): Game {
  if (isScoreEvent(event)) return before
  const cancelled = before.cancelled || event.type === 'game_cancelled'
  const state = isLate(before, event) ? before : { ...projectFirst(event), eventTime: event.time }
  const fullSince = cancelled ? before.fullSince : becomesFull(before, state, event)
  if (state === before && cancelled === before.cancelled && fullSince === before.fullSince) return before
  return { ...state, fullSince, cancelled }
}

/** Whether a fact is about the score of a game, and so says nothing new of the game itself. */
export function isScoreEvent(event: Pick<GameEvent, 'type'>): boolean {
  return event.type.startsWith('score_')
}

/** Whether a later fact is known already. */
function isLate(game: Game, event: GameEvent): boolean {
  return game.eventTime !== null && event.time < game.eventTime
}

const FILLING_TYPES = ['game_joined', 'game_created', 'game_updated', 'game_full']

/**
 * "`game_full` follows by itself from the join, creation or update that makes four [...]; a producer's own `game_full` for
 * the same filling adds nothing. A leave and a refill is a new fact."
 * @returns the new `filledAt`; the players are to be told when that is neither null nor the old one
 */
function becomesFull(before: Game, { playerIds, eventTime }: Game, event: GameEvent): string | null {
  // A producer's word that the game is full holds even where it doesn't name everybody.
  const full = event.playerIds.length === 4 || event.type === 'game_full'
  const fills = full && FILLING_TYPES.includes(event.type) ? event.time : null
  if (isLate(before, event)) {
    if (playerIds.length < 4) return before.fullSince
    if (full) return before.fullSince ?? fills
    // Fewer than four between the filling that was told and the four of now: these are a refill.
    return before.fullSince !== null && before.fullSince < event.time ? eventTime : before.fullSince
  }
  if (!full) return null
  // Somebody new among four: the leave that must have been between is late, or was never reported.
  const refilled = before.playerIds.length === 4 && playerIds.some(id => !before.playerIds.includes(id))
  return refilled ? fills : (before.fullSince ?? fills)
}
