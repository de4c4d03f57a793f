import type { Sql } from '../db/sql.ts'
import { timestamp } from '../http/format/timestamp.ts'
import type { NotificationType } from '../notification-types.ts'
import { type Announced, type Announcement, announce, type InsertCompanion } from '../notifications/announce.ts'
import type { LocalTime } from '../notifications/dates.ts'
import type { OnceKey } from './once-key.ts'
import * as onceKeys from './once-key.ts'
import type { GameEvent } from './parse-event.ts'
import { replaceByProducerReminder } from './plan-reminders.ts'
import { type Game, isScoreEvent } from './projection.ts'

/** An announcement about a game: the event, the notification type and the recipients. */
export type GameAnnouncement = {
  event: Pick<GameEvent, 'key' | 'type' | 'gameId' | 'actorId' | 'startsAt' | 'score'>
  type: NotificationType
  recipientIds: readonly number[]
  /**
   * The state of the game after the event was applied. If the event arrived late, the event itself contains an older
   * state than `game`.
   */
  game: Game
  /** The once-key of a reminder or a game start. The field is undefined for all other types. */
  onceKey?: OnceKey
}

/**
 * Makes announcements about games, except announcements whose once-key was claimed before. The caller must have locked
 * the games. The intake and the schedule both call this function.
 * @param besideInsert see `announce` in notifications/announce.ts
 * @returns the result of `announce`, and `fresh`, the set of the announcements that were made
 */
export async function announceOnce(
  tx: Sql,
  announcements: readonly GameAnnouncement[],
  localTime: LocalTime,
  besideInsert?: InsertCompanion,
): Promise<Announced & { fresh: Set<GameAnnouncement> }> {
  const fresh = await dropAlreadyAnnounced(tx, announcements, localTime.now)
  const announced = await announce(tx, fresh.map(toAnnouncement), localTime, besideInsert)
  return { ...announced, fresh: new Set(fresh) }
}

/** Claims the once-keys of announcements. Returns all announcements except those whose once-key was claimed before. */
async function dropAlreadyAnnounced(
  tx: Sql,
  announcements: readonly GameAnnouncement[],
  now: Date,
): Promise<readonly GameAnnouncement[]> {
  const keys = announcements.flatMap(({ onceKey, game }) => {
    if (onceKey === undefined) return []
    // For one of our reminders, this function claims two once-keys: the once-key of our reminder, and the once-key of a
    // producer's reminder for the same game start. If the producer later reports a reminder for this game start, the
    // second once-key is already claimed, so the intake drops the producer's reminder.
    return onceKey.kind === 'reminder' ? [onceKey, onceKeys.producerReminderKey(game)] : [onceKey]
  })
  if (keys.length === 0) return announcements
  const claimed = await onceKeys.claim(tx, keys, now)
  const fresh = announcements.filter(({ onceKey }) => onceKey === undefined || claimed.has(onceKey))
  const remindedGames = fresh.filter(({ onceKey }) => onceKey?.kind === 'producer_reminder').map(({ game }) => game)
  if (remindedGames.length > 0) await replaceByProducerReminder(tx, remindedGames, now)
  return fresh
}

function toAnnouncement({ event, type, recipientIds, game }: GameAnnouncement): Announcement {
  // A score event may omit the start of the game, or contain a start that a later event has changed. So the start in
  // the game's state takes precedence.
  const startsAt = isScoreEvent(event) ? (game.startsAt ?? event.startsAt) : game.startsAt
  return {
    type,
    eventKey: event.key,
    recipientIds,
    actorId: event.actorId,
    values: {
      ...(startsAt && { startsAt: new Date(startsAt) }),
      ...(event.score && { sets: event.score.sets }),
      playerCount: game.playerIds.length,
    },
    data: {
      game_id: event.gameId,
      ...(event.actorId !== undefined && { actor_id: event.actorId }),
      ...(event.score?.id !== undefined && { score_id: event.score.id }),
      ...(!isScoreEvent(event) && game.startsAt && { starts_at: timestamp(new Date(game.startsAt)) }),
    },
  }
}
