import type { Query, Sql } from '../db/sql.ts'
import { fragment } from '../db/statement.ts'
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

// The SQL pattern for the format of `canonicalInstant`, with microseconds. Instants in this format can be compared as
// strings.
const INSTANT_FORMAT = fragment`'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'`

/** The columns of a `GameRow`. */
const GAME_COLUMNS = fragment`
  id, creator_id, player_ids, place, cancelled,
  to_char(game.starts_at at time zone 'UTC', ${INSTANT_FORMAT}) as starts_at,
  to_char(fact_time at time zone 'UTC', ${INSTANT_FORMAT}) as fact_time,
  to_char(filled_at at time zone 'UTC', ${INSTANT_FORMAT}) as filled_at`

/**
 * Locks the games of those events that the transaction has stored, until the transaction ends. The games are locked in
 * the order of their ids, so two batches cannot deadlock. If a game is not in the table `game` yet, inserts it with the
 * state from its first event. One statement locks and inserts the games. It finds the stored events by itself, so it
 * can be sent together with the statement that stores them. Do not call it in a savepoint: `xmin` of a row that was
 * stored there is not the id of the transaction.
 * @param events different events, in their order
 */
export async function lock(sql: Sql, events: readonly GameEvent[], now: Date): Promise<Map<number, Game>> {
  const reported = toRows(events.map(projectFirst)).map((row, position) => ({
    ...row,
    position,
    event_key: events[position]!.key,
  }))
  const rows = await sql<GameRow>`
    insert into game (id, creator_id, player_ids, starts_at, place, updated_at)
    select distinct on (id) id, creator_id, player_ids, starts_at, place, ${now}
    from json_to_recordset(${JSON.stringify(reported)}::json)
        as reported (id bigint, creator_id bigint, player_ids bigint[], starts_at timestamptz, place text,
          position integer, event_key text)
      join event on event.key = event_key and event.xmin = pg_current_xact_id_if_assigned()::xid
    order by id, position
    on conflict on constraint game_pkey do update set updated_at = game.updated_at
    returning ${GAME_COLUMNS}`
  return new Map(rows.map(row => [row.id, toGame(row)]))
}

/**
 * Locks games that have a due time in the past, starting with the earliest due time. Skips games that another
 * transaction has locked. The statement never waits for a lock, so the order in which it locks the games cannot cause a
 * deadlock.
 * @param limit the maximum number of due times to read
 */
export async function lockDue(sql: Sql, now: Date, limit: number): Promise<Map<number, Game>> {
  const rows = await sql<GameRow>`
    select ${GAME_COLUMNS}
    from game_schedule join game on game.id = game_id
    where due_at <= ${now}
    order by due_at
    limit ${limit}
    for update of game skip locked`
  return new Map(rows.map(row => [row.id, toGame(row)]))
}

/** Returns the starts and the cancellations of games, by id. The result has no entry for an unknown game. */
export async function readStates(sql: Query, gameIds: readonly number[]) {
  const rows = await sql<{ id: number; starts_at: Date | null; cancelled: boolean }>`
    select id, starts_at, cancelled from game where id = any(${gameIds}::bigint[])`
  return new Map(rows.map(row => [row.id, { startsAt: row.starts_at ?? undefined, cancelled: row.cancelled }]))
}

/** Saves the new states of games. The caller must have locked the games. */
export async function save(sql: Sql, games: readonly Game[], now: Date): Promise<void> {
  if (games.length === 0) return
  await sql`
    update game set creator_id = saved.creator_id, player_ids = saved.player_ids, starts_at = saved.starts_at,
      place = saved.place, fact_time = saved.fact_time, filled_at = saved.filled_at, cancelled = saved.cancelled,
      updated_at = ${now}
    from json_to_recordset(${JSON.stringify(toRows(games))}::json)
      as saved (id bigint, creator_id bigint, player_ids bigint[], starts_at timestamptz, place text,
        fact_time timestamptz, filled_at timestamptz, cancelled boolean)
    where game.id = saved.id`
}

/**
 * Removes a user from all games, as a player and as the creator. The rows of the table `event` contain no user ids, so
 * this function does not change them. Locks the games in the order of their ids, as the intake does. The intake locks
 * games before it locks users. So call this function before any statement that locks rows of the user. Otherwise the
 * transaction could deadlock with the intake.
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

function toRows(games: readonly Game[]) {
  return games.map(game => ({
    id: game.id,
    creator_id: game.creatorId,
    player_ids: game.playerIds,
    starts_at: game.startsAt,
    place: game.place,
    fact_time: game.eventTime,
    filled_at: game.fullSince,
    cancelled: game.cancelled,
  }))
}

/** Returns the games that a user created or plays in, for `users export`. */
export async function exportUserData(sql: Sql, userId: number) {
  return sql`
    select id, creator_id = ${userId} as created, player_ids @> array[${userId}]::bigint[] as plays, starts_at, place,
      cancelled
    from game
    where player_ids @> array[${userId}]::bigint[] or creator_id = ${userId}
    order by id`
}
