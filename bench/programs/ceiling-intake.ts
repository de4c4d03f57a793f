import type { Sql } from '../../src/db/sql.ts'
import * as eventLog from '../../src/games/event-log.ts'
import * as games from '../../src/games/games.ts'
import type { GameEvent } from '../../src/games/parse-event.ts'
import { deriveKeys } from '../../src/keys.ts'
import { type NewNotification, store } from '../../src/notifications/store.ts'

const KEYS = deriveKeys(['Zt8RkPp3aWvYxq1LmN7oBc5dEf9gHiJk'])

/**
 * Creates the handler of the ceiling, the minimal server in `ceiling.ts`, for `POST /internal/v1/events`. The handler
 * inserts the same rows as the service: the event, the game, its schedule and the notifications. The handler uses a
 * plain transaction and checks nothing. All notifications have the same title and message.
 */
export function createIntakeCeiling(sql: Sql) {
  return async (body: any): Promise<unknown> => {
    const now = new Date()
    const event = parseEvent(body)
    return sql.begin(async tx => {
      await eventLog.record(tx, KEYS, [event], now)
      await games.lock(tx, [event], now)
      await schedule(tx, event)
      const recipients = [event.creatorId, ...event.playerIds].filter(userId => userId !== event.actorId)
      await store(
        tx,
        recipients.map(userId => makeNotification(userId, event)),
        now,
      )
      return { id: event.id, status: 'accepted', notifications: recipients.length }
    })
  }
}

function parseEvent({ id, type, time, data }: any): GameEvent {
  return {
    id,
    key: `bare-${id}`,
    digest: 'SrmnAMfjpYKQyJ5SCjJg7S5AYXPXVsB2xXDEuo1RvV8',
    type,
    time,
    gameId: data.game_id,
    creatorId: data.creator_id,
    playerIds: data.player_ids,
    actorId: data.actor_id,
    startsAt: data.starts_at,
  }
}

async function schedule(tx: Sql, { gameId, startsAt }: GameEvent): Promise<void> {
  const start = Date.parse(startsAt!)
  const rows = [24, 2, 0].map(hours => ({
    game_id: gameId,
    starts_at: startsAt,
    type: hours > 0 ? 'game_reminder' : 'game_started',
    due_at: new Date(start - hours * 3_600_000),
  }))
  await tx`
    insert into game_schedule (game_id, starts_at, type, due_at)
    select game_id, starts_at, type, due_at
    from json_to_recordset(${JSON.stringify(rows)}::json)
      as planned (game_id bigint, starts_at timestamptz, type text, due_at timestamptz)`
}

function makeNotification(userId: number, event: GameEvent): NewNotification {
  return {
    userId,
    dedupKey: `${event.key}/game_joined`,
    type: 'game_joined',
    title: 'Un joueur a rejoint la partie',
    message: 'Marie a rejoint la partie du samedi 16 janvier 2027 à 18 h 00 (3/4).',
    data: { game_id: event.gameId, actor_id: event.actorId, starts_at: event.startsAt },
    locale: 'fr',
    actorId: event.actorId!,
    actorName: { start: 0, length: 5 },
  }
}
