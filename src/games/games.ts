import type { Sql } from '../db/sql.ts'
import type { GameEvent } from './parse-event.ts'
import { type Game, projectFirst } from './projection.ts'

type GameRow = {
  id: number
  creator_id: number | null
  player_ids: number[]
  starts_at: string | null
  place: string | null
  fact_time: string | null
  filled_at: string | null
  cancelled: boolean
}

/**
 * Locks the games that the facts speak of until the transaction ends, in ascending order, so that no two batches wait for
 * each other; a game that isn't known yet becomes known by the first of its facts. One statement.
 */
export async function lock(sql: Sql, events: readonly GameEvent[], now: Date): Promise<Map<number, Game>> {
  const heard = new Map(events.toReversed().map(event => [event.gameId, projectFirst(event)]))
  const rows = await sql<GameRow>`
    insert into game (id, creator_id, player_ids, starts_at, place, updated_at)
    select id, creator_id, player_ids, starts_at, place, ${now}
    from json_to_recordset(${toJson(heard.values())}::json)
      as heard (id bigint, creator_id bigint, player_ids bigint[], starts_at timestamptz, place text)
    order by id
    on conflict on constraint game_pkey do update set updated_at = game.updated_at
    returning id, creator_id, player_ids, place, cancelled,
      to_char(starts_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as starts_at,
      to_char(fact_time at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as fact_time,
      to_char(filled_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as filled_at`
  return new Map(rows.map(row => [row.id, toGame(row)]))
}

/**
 * Locks games of which something is due, the longest overdue first, and passes over those that somebody else holds. So it
 * never waits, and its order can be another than the intake's.
 * @param limit how many due times to look for them at
 */
export async function lockDue(sql: Sql, now: Date, limit: number): Promise<Map<number, Game>> {
  const rows = await sql<GameRow>`
    select id, creator_id, player_ids, place, cancelled,
      to_char(game.starts_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as starts_at,
      to_char(fact_time at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as fact_time,
      to_char(filled_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as filled_at
    from game_schedule join game on game.id = game_id
    where due_at <= ${now}
    order by due_at
    limit ${limit}
    for update of game skip locked`
  return new Map(rows.map(row => [row.id, toGame(row)]))
}

/** Writes what became of locked games. */
export async function save(sql: Sql, games: readonly Game[], now: Date): Promise<void> {
  if (games.length === 0) return
  await sql`
    update game set creator_id = saved.creator_id, player_ids = saved.player_ids, starts_at = saved.starts_at,
      place = saved.place, fact_time = saved.fact_time, filled_at = saved.filled_at, cancelled = saved.cancelled,
      updated_at = ${now}
    from json_to_recordset(${toJson(games)}::json)
      as saved (id bigint, creator_id bigint, player_ids bigint[], starts_at timestamptz, place text,
        fact_time timestamptz, filled_at timestamptz, cancelled boolean)
    where game.id = saved.id`
}

/**
 * Keeps that these notices of locked games are told, so that none is told again.
 * @returns `<game id> <notice>` of each that was not told before
 */
export async function claimOnceKeys(
  sql: Sql,
  onceKeys: readonly { game: Game; onceKey?: string }[],
  now: Date,
): Promise<Set<string>> {
  const rows = await sql<{ game_id: number; notice: string }>`
    insert into game_notice (game_id, notice, created_at)
    select game_id, notice, ${now}
    from unnest(${onceKeys.map(({ game }) => game.id)}::bigint[], ${onceKeys.map(({ onceKey }) => onceKey)}::text[])
      as told (game_id, notice)
    on conflict on constraint game_notice_pkey do nothing
    returning game_id, notice`
  return new Set(rows.map(row => `${row.game_id} ${row.notice}`))
}

/**
 * "Deleting a user [...] takes them out of games and event records"; of an event nothing but hashes is kept. The games are
 * locked in ascending order, as the intake does, and must be before anything of the user's is.
 */
export async function removePlayer(sql: Sql, userId: number): Promise<void> {
  await sql`
    with mine as (
      select id from game
      where player_ids @> array[${userId}]::bigint[] or creator_id = ${userId}
      order by id
      for update
    )
    update game set player_ids = array_remove(player_ids, ${userId}::bigint), creator_id = nullif(creator_id, ${userId})
    from mine
    where game.id = mine.id`
}

function toGame(row: GameRow): Game {
  return {
    id: row.id,
    creatorId: row.creator_id,
    playerIds: row.player_ids,
    startsAt: row.starts_at,
    place: row.place,
    eventTime: row.fact_time,
    fullSince: row.filled_at,
    cancelled: row.cancelled,
  }
}

function toJson(games: Iterable<Game>): string {
  const rows = Array.from(games, game => ({
    id: game.id,
    creator_id: game.creatorId,
    player_ids: game.playerIds,
    starts_at: game.startsAt,
    place: game.place,
    fact_time: game.eventTime,
    filled_at: game.fullSince,
    cancelled: game.cancelled,
  }))
  return JSON.stringify(rows)
}

/** What is held on a user here (`users export`). */
export async function exportUserData(sql: Sql, userId: number) {
  return sql`
    select id, creator_id = ${userId} as created, player_ids @> array[${userId}]::bigint[] as plays, starts_at, place, cancelled
    from game
    where player_ids @> array[${userId}]::bigint[] or creator_id = ${userId}
    order by id`
}
