import type { Sql } from '../db/sql.ts'
import { timestamp } from '../http/format/timestamp.ts'
import { type Announced, type Announcement, announce, type InsertCompanion } from '../notifications/announce.ts'
import type { NotificationType } from '../notifications/catalogue.ts'
import type { LocalTime } from '../notifications/dates.ts'
import type { OnceKey } from './once-key.ts'
import * as onceKeys from './once-key.ts'
import type { GameEvent } from './parse-event.ts'
import { replaceByProducerReminder } from './plan-reminders.ts'
import { type Game, isScoreEvent } from './projection.ts'

/** A notification to send about a game: the event, the notification type and the recipients. */
export type GameAnnouncement = {
  event: Pick<GameEvent, 'key' | 'type' | 'gameId' | 'actorId' | 'startsAt' | 'score'>
  type: NotificationType
  recipientIds: readonly number[]
  /** The game after the event. After a late event this is newer than the state in the event. */
  game: Game
  /** Only for what is announced at most once per game. */
  onceKey?: OnceKey
}

/**
 * Announces events of locked games, except those whose once-key was claimed before. The intake and the schedule both
 * announce by this function.
 * @param besideInsert see `announce` of the notifications
 * @returns the announcements that were new, and what `announce` returns about them
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

/** Claims the once-keys, and leaves out the announcements whose key was claimed before. */
async function dropAlreadyAnnounced(
  tx: Sql,
  announcements: readonly GameAnnouncement[],
  now: Date,
): Promise<readonly GameAnnouncement[]> {
  const keys = announcements.flatMap(({ onceKey, game }) => {
    if (onceKey === undefined) return []
    // After our reminder, the producer's reminder for the same start adds nothing.
    return onceKey.kind === 'reminder' ? [onceKey, onceKeys.producerReminderKey(game)] : [onceKey]
  })
  if (keys.length === 0) return announcements
  const claimed = await onceKeys.claim(tx, keys, now)
  const fresh = announcements.filter(({ onceKey }) => onceKey === undefined || claimed.has(onceKey))
  const reminded = fresh.filter(({ onceKey }) => onceKey?.kind === 'producer_reminder').map(({ game }) => game)
  if (reminded.length > 0) await replaceByProducerReminder(tx, reminded, now)
  return fresh
}

function toAnnouncement({ event, type, recipientIds, game }: GameAnnouncement): Announcement {
  // A score event may lack the start. Or a later event may have changed the start that the score event reports.
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
