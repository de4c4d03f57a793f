import type { NotificationType } from '../notification-types.ts'
import { findQuietEnd, type QuietHours } from './quiet-hours.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

/** A delivery about a game waits in quiet hours at most until this time before the start. */
const WAKE_BEFORE_START_MS = HOUR_MS
const START_DEADLINE_MS = 15 * MINUTE_MS
const DEADLINE_MS = 48 * HOUR_MS
const MIN_DEADLINE_MS = MINUTE_MS
const MAX_DEADLINE_MS = 28 * 24 * HOUR_MS

/** The state of a game as the events have changed it so far. */
export type GameState = { startsAt: Date | undefined; cancelled: boolean }

/** The type of a stored notification, and the start of the game when it was stored (`data.starts_at`). */
export type TimedNotification = { type: NotificationType; startsAt: string | undefined }

/** Returns the members of a notification that decide when a delivery about it may leave. */
export function toTimed({ type, data }: { type: NotificationType; data: Record<string, unknown> }): TimedNotification {
  return { type, startsAt: typeof data.starts_at === 'string' ? data.starts_at : undefined }
}

/** Returns the number of the game that a notification is about. */
export function findGameId({ data }: { data: Record<string, unknown> }): number | null {
  return typeof data.game_id === 'number' ? data.game_id : null
}

/** The preferences that decide when a delivery may leave. */
export type QuietPreferences = { quietHours: QuietHours; timeZone: string }

/**
 * Returns whether an unread notification has become pointless, because the game has started, moved or was cancelled. A
 * cancellation and a score never become pointless.
 * @param game undefined if the service does not know the game
 */
export function isStale(notification: TimedNotification, game: GameState | undefined, now: Date): boolean {
  const startsAt = findStart(notification, game)
  const hasStarted = startsAt !== undefined && startsAt <= now
  const isCancelled = game?.cancelled === true
  switch (notification.type) {
    case 'game_joined':
    case 'game_left':
    case 'game_full':
      return hasStarted || isCancelled
    case 'game_reminder':
      return hasStarted || isCancelled || isMoved(notification, game)
    case 'game_started':
      return isCancelled || isMoved(notification, game)
    default:
      return false
  }
}

/**
 * Returns the time until which a delivery must wait because of quiet hours. A delivery about a game that has not
 * started waits at most until 60 minutes before the start.
 * @returns undefined if the delivery may leave now
 */
export function findDelay(
  notification: TimedNotification,
  game: GameState | undefined,
  { quietHours, timeZone }: QuietPreferences,
  now: Date,
): Date | undefined {
  if (notification.type === 'game_started') return undefined
  const quietEnd = findQuietEnd(now, quietHours, timeZone)
  const startsAt = findStart(notification, game)
  if (!quietEnd || isScore(notification.type) || !startsAt || startsAt <= now) return quietEnd
  const wakeAt = new Date(startsAt.getTime() - WAKE_BEFORE_START_MS)
  if (wakeAt <= now) return undefined
  return wakeAt < quietEnd ? wakeAt : quietEnd
}

/**
 * Returns the time after which a push is dropped. Reminders and cancellations are useful until the start of the game. A
 * game that was cancelled after its start has the deadline of the other types.
 */
export function computeDeadline(notification: TimedNotification, game: GameState | undefined, createdAt: Date): Date {
  const after = (ms: number) => new Date(createdAt.getTime() + Math.min(Math.max(ms, MIN_DEADLINE_MS), MAX_DEADLINE_MS))
  const { type } = notification
  if (type === 'game_started') return after(START_DEADLINE_MS)
  const startsAt = findStart(notification, game)
  const endsAtStart = type === 'game_reminder' || (type === 'game_cancelled' && startsAt && startsAt > createdAt)
  return after(endsAtStart && startsAt ? startsAt.getTime() - createdAt.getTime() : DEADLINE_MS)
}

function isScore(type: NotificationType): boolean {
  return type.startsWith('score_')
}

function findStart({ startsAt }: TimedNotification, game: GameState | undefined): Date | undefined {
  if (game) return game.startsAt
  return startsAt === undefined ? undefined : new Date(startsAt)
}

/** Returns whether the start of the game, to the second, is no longer the start that the notification names. */
function isMoved({ startsAt }: TimedNotification, game: GameState | undefined): boolean {
  if (!game) return false
  return toSeconds(startsAt === undefined ? undefined : new Date(startsAt)) !== toSeconds(game.startsAt)
}

function toSeconds(instant: Date | undefined): number | undefined {
  return instant && Math.floor(instant.getTime() / 1000)
}
