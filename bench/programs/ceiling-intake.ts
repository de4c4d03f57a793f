import type { Sql } from '../../src/db/sql.ts'
import * as events from '../../src/games/event-log.ts'
import * as games from '../../src/games/games.ts'
import type { Fact } from '../../src/games/parse-event.ts'
import * as notifications from '../../src/notifications/notifications.ts'

/**
 * "The same inserts in a bare transaction": the event, the game, what is planned for it, and the notifications. Nothing is
 * checked, looked up, updated or composed: the texts are always the same ones.
 */
export function ceilingOfIntake(sql: Sql) {
  return async (event: any): Promise<unknown> => {
    const now = new Date()
    const fact = factOf(event)
    return sql.begin(async tx => {
      await events.record(tx, [fact], now)
      await games.lock(tx, [fact], now)
      await schedule(tx, fact)
      const told = [fact.creatorId, ...fact.playerIds].filter(userId => userId !== fact.actorId)
      await notifications.deliver(
        tx,
        told.map(userId => notificationOf(userId, fact)),
        now,
      )
      return { id: event.id, status: 'accepted', notifications: told.length }
    })
  }
}

function factOf({ id, type, time, data }: any): Fact {
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

async function schedule(tx: Sql, { gameId, startsAt }: Fact): Promise<void> {
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

function notificationOf(userId: number, fact: Fact): notifications.NewNotification {
  return {
    userId,
    fact: `${fact.key}/game_joined`,
    type: 'game_joined',
    title: 'Un joueur a rejoint la partie',
    message: 'Marie a rejoint la partie du samedi 16 janvier 2027 à 18 h 00 (3/4).',
    data: { game_id: fact.gameId, actor_id: fact.actorId, starts_at: fact.startsAt },
    locale: 'fr',
    actorId: fact.actorId!,
    actorNameLength: 5,
  }
}
