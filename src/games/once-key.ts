import type { Sql } from '../db/sql.ts'
import type { Game } from './projection.ts'

/**
 * The deduplication key of a start or a reminder. The service announces each key once, even if the schedule and the
 * producer both report it. The table `game_notice` stores the text. The texts must not change: stored rows and older
 * processes have them.
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

/** Returns the key of one of our reminders. A game has several for the same start, each with its own due time. */
export function reminderKey({ id, startsAt }: GameStart, dueAt: Date): OnceKey {
  return { kind: 'reminder', gameId: id, text: `reminder@${startsAt} due ${dueAt.toISOString()}` }
}

/** Returns the key of a reminder that the producer reports. A game has one for each start. */
export function producerReminderKey({ id, startsAt }: GameStart): OnceKey {
  return { kind: 'producer_reminder', gameId: id, text: `reminder@${startsAt}` }
}

/** Returns a key in the form of an event key, for what our schedule announces without a reported event. */
export function toEventKey({ gameId, text }: OnceKey): string {
  return `${gameId} ${text}`
}

/**
 * Records keys of locked games as announced.
 * @returns the keys that were not recorded before. Of equal keys in `keys` it returns the first
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
