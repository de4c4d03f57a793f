// Generated from docs/openapi.json by client/scripts/types.ts; not to be edited.

export type Error = { message: string; code: 'validation_failed' | 'otp_invalid' | 'unauthenticated' | 'forbidden' | 'not_found' | 'method_not_allowed' | 'payload_too_large' | 'unsupported_media_type' | 'event_mismatch' | 'throttled' | 'wait' | 'unavailable' | 'server_error'; errors?: Record<string, Array<string>> }

/** With the e-mail alone a sign-in; with any of the other fields a sign-up, which needs all of them. */
export type CredentialsRequest = { email: string; first_name?: string; last_name?: string; accept_cgu?: boolean }

export type Message = { message: string }

export type OtpVerification = { email: string; code: string }

export type TokenResult = { access_token: string; is_new_user: boolean }

export type RefreshResult = { access_token: string; token_type: 'bearer'; expires_in: number }

export type GameLevel = { id: number; slug: string; name: string; description: string; position: number }

export type User = { id: number; email: string; first_name: string; last_name: string; locale: 'fr' | 'en'; game_level: GameLevel | null; created_at: string; updated_at: string }

export type LevelAssessment = { game_level_id: number }

export type Score = { id?: number; sets: string }

/** The state of the game after the fact; `score` is required on score events. */
export type EventData = { game_id: number; creator_id: number; player_ids: Array<number>; actor_id?: number; by_id?: number; starts_at?: string; place?: string; score?: Score }

export type CloudEvent = { specversion: '1.0'; id: string; source: string; type: 'game_joined' | 'game_left' | 'game_cancelled' | 'game_full' | 'game_reminder' | 'game_started' | 'score_submitted' | 'score_validated' | 'score_contested' | 'score_finalized' | 'game_created' | 'game_updated'; time: string; data: EventData }

export type EventResult = { id: string; status: 'accepted' | 'duplicate'; notifications: number }

export type RejectedEvent = { id: string | null; status: 'rejected'; message: string; code: string; errors?: Record<string, Array<string>> }

export type BatchResult = { results: Array<EventResult | RejectedEvent> }

export type Notification = { id: number; type: 'game_joined' | 'game_left' | 'game_cancelled' | 'game_full' | 'game_reminder' | 'game_started' | 'score_submitted' | 'score_validated' | 'score_contested' | 'score_finalized'; title: string; message: string; data: Record<string, unknown> | null; is_read: boolean; read_at: string | null; created_at: string }

export type PaginationMeta = { current_page: number; last_page: number; per_page: number; total: number; unread_count: number }

/** What each endpoint takes and answers. */
export type Endpoints = {
  /** Ask for a one-time code, to sign up or in */
  'POST /api/v1/auth/request-otp': { path: undefined; query: undefined; body: CredentialsRequest; answer: Message }
  /** Trade a code for an access token */
  'POST /api/v1/auth/verify-otp': { path: undefined; query: undefined; body: OtpVerification; answer: TokenResult }
  /** Renew the access token, also an expired one, for 7 days from the sign-in */
  'POST /api/v1/auth/refresh': { path: undefined; query: undefined; body: undefined; answer: RefreshResult }
  /** End this session */
  'POST /api/v1/auth/logout': { path: undefined; query: undefined; body: undefined; answer: Message }
  /** The signed-in user */
  'GET /api/v1/auth/me': { path: undefined; query: undefined; body: undefined; answer: { data: User } }
  /** Delete one’s own account, with a fresh code */
  'DELETE /api/v1/auth/me': { path: undefined; query: undefined; body: { code: string }; answer: Message }
  /** The game levels to choose from */
  'GET /api/v1/game-levels': { path: undefined; query: undefined; body: undefined; answer: { data: Array<GameLevel> } }
  /** Choose one’s own game level */
  'POST /api/v1/auth/level-assessment': { path: undefined; query: undefined; body: LevelAssessment; answer: { data: User } }
  /** Report facts about games and scores */
  'POST /internal/v1/events': { path: undefined; query: undefined; body: CloudEvent | Array<CloudEvent>; answer: EventResult | BatchResult }
  /** One’s own notifications, newest first */
  'GET /api/v1/notifications': { path: undefined; query: { page?: number; per_page?: number; before_id?: number }; body: undefined; answer: { data: Array<Notification>; meta: PaginationMeta } }
  /** How many of them are unread */
  'GET /api/v1/notifications/unread-count': { path: undefined; query: undefined; body: undefined; answer: { unread_count: number } }
  /** What is new, as server-sent events */
  'GET /api/v1/notifications/stream': { path: undefined; query: undefined; body: undefined; answer: string }
  /** Mark one as read */
  'POST /api/v1/notifications/{id}/read': { path: { id: number }; query: undefined; body: undefined; answer: { data: Notification } }
  /** Mark all as read, or those that were on the screen */
  'POST /api/v1/notifications/read-all': { path: undefined; query: undefined; body: { ids?: Array<number> }; answer: { message: string; count: number } }
  /** Delete one */
  'DELETE /api/v1/notifications/{id}': { path: { id: number }; query: undefined; body: undefined; answer: Message }
}
