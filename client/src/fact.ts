import type { CloudEvent, EventData, Score } from './api.ts'

type State = Omit<EventData, 'score' | 'starts_at' | 'actor_id'> & { actor_id?: number }
type GameState = State & { starts_at: string }

type GameType = 'game_created' | 'game_updated' | 'game_cancelled' | 'game_full' | 'game_reminder' | 'game_started'
type MoveType = 'game_joined' | 'game_left'
type ScoreType = Exclude<CloudEvent['type'], GameType | MoveType>

/**
 * Something that happened, and the state of the game after it. What each type needs is what the service demands of it.
 */
export type Fact = {
  /** With the reporter's source the fact's name: a repeat has no effect. Best something that your own records hold. */
  id?: string
  /** When it happened, which orders the facts of a game; by default now. */
  time?: string | Date
} & (
  | { type: GameType; data: GameState }
  | { type: MoveType; data: GameState & { actor_id: number } }
  | { type: ScoreType; data: State & { starts_at?: string; score: Score } }
)

/** A fact as it is sent: named and dated, so that sending it again is a repeat. */
export type ReportedFact = Fact & CloudEvent
