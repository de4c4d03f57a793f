import type { Sql } from '../db/sql.ts'
import type { Game } from './projection.ts'

/**
 * The deduplication key of a reminder or a game start. The service makes at most one announcement for each once-key,
 * even if both our schedule and the producer cause the announcement. The table `game_notice` stores `text`. The formats
 * of `text` must not change. An earlier version of the service may have stored rows in these formats, and a process of
 * an earlier version may still be running.
 */
export type OnceKey = Readonly<{
  kind: 'start' | 'reminder' | 'producer_reminder'
  gameId: number
  text: string
}>

type GameStart = Pick<Game, 'id' | 'startsAt'>

export function startedKey({ id, startsAt }: GameStart): OnceKey {
  return { kind: 'start', gameId: id, text: `started@${startsAt}` }
}

/**
 * Returns the once-key of one of our reminders. A game start can have several reminders, each with its own due time.
 */
export function reminderKey({ id, startsAt }: GameStart, dueAt: Date): OnceKey {
  return { kind: 'reminder', gameId: id, text: `reminder@${startsAt} due ${dueAt.toISOString()}` }
}

/** Returns the once-key of a producer's reminder. Each game start has only one once-key of this kind. */
export function producerReminderKey({ id, startsAt }: GameStart): OnceKey {
  return { kind: 'producer_reminder', gameId: id, text: `reminder@${startsAt}` }
}

/**
 * Returns the event key for an announcement that our schedule makes. Other announcements use the key of the event that
 * a producer reported. For an announcement of the schedule there is no such event, so its event key is made from the
 * once-key.
 */
export function toEventKey({ gameId, text }: OnceKey): string {
  return `${gameId} ${text}`
}

/**
 * Records once-keys in the table `game_notice`. The caller must have locked the games to which the once-keys belong.
 * @returns the once-keys that had not been recorded before. If `keys` contains equal once-keys, only the first of them
 *   is returned
 */
export async function claim(sql: Sql, keys: readonly OnceKey[], now: Date): Promise<Set<OnceKey>> {
  const rows = await sql<{ game_id: number; notice: string }>`
    insert into game_notice (game_id, notice, created_at)
    select game_id, notice, ${now}
    from unnest(${keys.map(key => key.gameId)}::bigint[], ${keys.map(key => key.text)}::text[])
      as claimed (game_id, notice)
    on conflict on constraint game_notice_pkey do nothing
    returning game_id, notice`
  return new Set(rows.map(row => keys.find(key => key.gameId === row.game_id && key.text === row.notice)!))
}
