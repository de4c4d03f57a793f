import type { CloudEvent, EventData, Score } from './api.ts'

type EventType = CloudEvent['type']
type GameType = 'game_created' | 'game_updated' | 'game_cancelled' | 'game_full' | 'game_reminder' | 'game_started'
type MoveType = 'game_joined' | 'game_left'
type ScoreType = 'score_submitted' | 'score_validated' | 'score_contested' | 'score_finalized'

type GroupedType = GameType | MoveType | ScoreType

type AssertNever<T extends never> = T
/** Compiles only if the groups above contain exactly the event types of the OpenAPI document. */
export type UngroupedType = AssertNever<Exclude<EventType, GroupedType> | Exclude<GroupedType, EventType>>

type AnyState = Omit<EventData, 'score' | 'starts_at' | 'actor_id'> & { actor_id?: number }
type GameState = AnyState & { starts_at: string }

/**
 * An event about a game. `data` is the state of the game after the event. For each event type, the type `GameEvent`
 * requires the data that the service requires.
 */
export type GameEvent = {
  /** The id and the reporter's source together identify the event. Use an id from your own records. */
  id?: string
  /**
   * The time at which the event happened. The service orders the events of a game by this time. The default is the
   * current time.
   */
  time?: string | Date
} & (
  | { type: GameType; data: GameState }
  | { type: MoveType; data: GameState & { actor_id: number } }
  | { type: ScoreType; data: AnyState & { starts_at?: string; score: Score } }
)

/** An event that has an id and a time. If you report this event again, the service recognizes the repetition. */
export type ReportedEvent = GameEvent & CloudEvent
