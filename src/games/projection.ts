import type { Fact } from './parse-event.ts'

/** What is known of a game. Instants are in their canonical spelling. */
export type Game = {
  id: number
  creatorId: number | null
  playerIds: readonly number[]
  startsAt: string | null
  place: string | null
  /** The time of the newest fact applied; null while only a score has made the game known. */
  factTime: string | null
  /** The time of the fact by which the present four were told that they are; null while nobody was. */
  filledAt: string | null
  cancelled: boolean
}

/** A game that is heard of for the first time, as though by a score: any game event then is newer than what is known. */
export function firstHeard(fact: Fact): Game {
  return {
    id: fact.gameId,
    creatorId: fact.creatorId,
    playerIds: fact.playerIds,
    startsAt: fact.startsAt ?? null,
    place: fact.place ?? null,
    factTime: null,
    filledAt: null,
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
export function apply(before: Game, fact: Fact): Game {
  if (isScore(fact)) return before
  const cancelled = before.cancelled || fact.type === 'game_cancelled'
  const state = isLate(before, fact) ? before : { ...firstHeard(fact), factTime: fact.time }
  const filledAt = cancelled ? before.filledAt : fill(before, state, fact)
  if (state === before && cancelled === before.cancelled && filledAt === before.filledAt) return before
  return { ...state, filledAt, cancelled }
}

/** Whether a fact is about the score of a game, and so says nothing new of the game itself. */
export function isScore(fact: Pick<Fact, 'type'>): boolean {
  return fact.type.startsWith('score_')
}

/** Whether a later fact is known already. */
function isLate(game: Game, fact: Fact): boolean {
  return game.factTime !== null && fact.time < game.factTime
}

const FILLING = ['game_joined', 'game_created', 'game_updated', 'game_full']

/**
 * "`game_full` follows by itself from the join, creation or update that makes four [...]; a producer's own `game_full` for
 * the same filling adds nothing. A leave and a refill is a new fact."
 * @returns the new `filledAt`; the players are to be told when that is neither null nor the old one
 */
function fill(before: Game, { playerIds, factTime }: Game, fact: Fact): string | null {
  // A producer's word that the game is full holds even where it doesn't name everybody.
  const full = fact.playerIds.length === 4 || fact.type === 'game_full'
  const fills = full && FILLING.includes(fact.type) ? fact.time : null
  if (isLate(before, fact)) {
    if (playerIds.length < 4) return before.filledAt
    if (full) return before.filledAt ?? fills
    // Fewer than four between the filling that was told and the four of now: these are a refill.
    return before.filledAt !== null && before.filledAt < fact.time ? factTime : before.filledAt
  }
  if (!full) return null
  // Somebody new among four: the leave that must have been between is late, or was never reported.
  const refilled = before.playerIds.length === 4 && playerIds.some(id => !before.playerIds.includes(id))
  return refilled ? fills : (before.filledAt ?? fills)
}
