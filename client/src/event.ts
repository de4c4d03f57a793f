import type { CloudEvent, EventData, Score } from './api.ts'

type EventType = CloudEvent['type']
type GameType = 'game_created' | 'game_updated' | 'game_cancelled' | 'game_full' | 'game_reminder' | 'game_started'
type MoveType = 'game_joined' | 'game_left'
type ScoreType = 'score_submitted' | 'score_validated' | 'score_contested' | 'score_finalized'

type GroupedType = GameType | MoveType | ScoreType

type AssertNever<T extends never> = T
/** Does not compile until the groups above contain every event type of the OpenAPI document and no other. */
export type UngroupedType = AssertNever<Exclude<EventType, GroupedType> | Exclude<GroupedType, EventType>>

type AnyState = Omit<EventData, 'score' | 'starts_at' | 'actor_id'> & { actor_id?: number }
type GameState = AnyState & { starts_at: string }

/**
 * An event about a game, with the state of the game after it. Each type requires the data that the service requires.
 */
export type GameEvent = {
  /** Identifies the event together with the reporter's source, so a repeat has no effect. Use an id of your records. */
  id?: string
  /** When the event happened, which orders the events of a game. The default is now. */
  time?: string | Date
} & (
  | { type: GameType; data: GameState }
  | { type: MoveType; data: GameState & { actor_id: number } }
  | { type: ScoreType; data: AnyState & { starts_at?: string; score: Score } }
)

/** An event as the reporter sends it. It has an id and a time, so sending it again is a repeat. */
export type ReportedEvent = GameEvent & CloudEvent
