import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import type { Hint, Hints } from '../db/hints.ts'
import type { Sql } from '../db/sql.ts'
import type { LocalTime } from '../notifications/dates.ts'
import { announceOnce, type GameAnnouncement } from './announce.ts'
import type { DueTime } from './due-times.ts'
import * as games from './games.ts'
import { reminderKey, startedKey, toEventKey } from './once-key.ts'
import type { Game } from './projection.ts'

/** The service announces a game start at most 15 min late. */
const START_GRACE_MS = 15 * 60_000

/**
 * The maximum number of due times in one transaction. The transaction locks the games of these due times for a few
 * milliseconds.
 */
const BATCH_SIZE = 50

const POLL_MS = 1_000

/**
 * The outcome of one due time. The value `told` means that the service announced the due time. The value `dropped`
 * means that the service did not announce the due time. Either it was too late, or the game was cancelled or moved, or
 * the due time had been announced before. The field `outcome` is a label of the metric `reminders_total`.
 */
export type Fired = { type: DueTime['type']; outcome: 'told' | 'dropped'; lateSeconds: number }

type DueRow = { game_id: number; type: DueTime['type']; due_at: Date; is_current: boolean }

/**
 * Announces a batch of due times and deletes them from the schedule, in one transaction that locks the games. The locks
 * prevent duplicate announcements, and announcements about a cancelled or moved game. If the process crashes,
 * PostgreSQL rolls the transaction back, and the due times stay in the schedule. Skips games that another transaction
 * has locked. A later call handles the skipped games.
 * @param changed `fireDue` adds the hints about the recipients. The caller sends them after the commit
 * @returns the outcomes. The array is empty if no due time can be handled now
 */
export async function fireDue(sql: Sql, localTime: LocalTime, changed: Set<Hint>): Promise<Fired[]> {
  const { now } = localTime
  return sql.begin(async tx => {
    const locked = await games.lockDue(tx, now, BATCH_SIZE)
    if (locked.size === 0) return []
    // The statement in `lockDue` reads a snapshot that may be older than its locks. The statement below reads a new
    // snapshot, so it sees the current state of the locked games.
    const due = await tx<DueRow>`
      delete from game_schedule using game
      where game.id = game_id and game_id = any(${[...locked.keys()]}::bigint[]) and due_at <= ${now}
      returning game_id, type, due_at, game.starts_at = game_schedule.starts_at and not cancelled as is_current`
    const timely = [...Map.groupBy(due, row => row.game_id)].flatMap(([id, rows]) =>
      rows.filter(row => isTimely(row, rows, locked.get(id)!, now)),
    )
    const announcements = new Map(timely.map(row => [row, toAnnouncement(locked.get(row.game_id)!, row)]))
    const { fresh, hints } = await announceOnce(tx, [...announcements.values()], localTime)
    for (const hint of hints) changed.add(hint)
    return due.map(row => ({
      type: row.type,
      outcome: fresh.has(announcements.get(row)!) ? 'told' : 'dropped',
      lateSeconds: (now.getTime() - row.due_at.getTime()) / 1000,
    }))
  })
}

/**
 * Returns whether the service may announce a due time. Of several overdue reminders of a game, the service announces
 * only the last, and only before the start. It announces a start at most 15 min late.
 */
function isTimely(row: DueRow, rowsOfGame: readonly DueRow[], { startsAt }: Game, now: Date): boolean {
  if (!row.is_current) return false
  const start = Date.parse(startsAt!)
  if (row.type === 'game_started') return now.getTime() <= start + START_GRACE_MS
  const isSuperseded = rowsOfGame.some(
    other => other.is_current && other.type === row.type && other.due_at > row.due_at,
  )
  return !isSuperseded && now.getTime() < start
}

/**
 * Returns the announcement for a due time. No producer reported an event for the due time, so the event key is made
 * from the once-key.
 */
function toAnnouncement(game: Game, { type, due_at }: DueRow): GameAnnouncement {
  const onceKey = type === 'game_started' ? startedKey(game) : reminderKey(game, due_at)
  const event = { key: toEventKey(onceKey), type, gameId: game.id }
  return { event, type, recipientIds: game.playerIds, game, onceKey }
}

/**
 * Returns the number of overdue rows in the table `game_schedule`, and for how many seconds the oldest of these rows
 * has been overdue. Normally both numbers are 0.
 */
export async function countOverdue(sql: Sql, now: Date): Promise<{ waiting: number; oldestSeconds: number }> {
  const [row] = await sql<{ waiting: number; oldest: Date | null }>`
    select count(*) as waiting, min(due_at) as oldest from game_schedule where due_at <= ${now}`
  return { waiting: row!.waiting, oldestSeconds: row!.oldest ? (now.getTime() - row!.oldest.getTime()) / 1000 : 0 }
}

/**
 * Polls every second for due reminders and game starts. Any number of workers may poll at the same time.
 * @param localTime returns the current local time. `startSchedule` calls this function again for each batch. The texts
 *   of notifications contain "today" and "tomorrow", so they must not use the date of an earlier batch
 * @param observe receives the outcome of each due time
 * @returns `stop`, which ends the polling and waits until the current batch is finished
 */
export function startSchedule(
  { sql, hints }: { sql: Sql; hints: Hints },
  localTime: () => LocalTime,
  log: FastifyBaseLogger,
  observe: (fired: Fired) => void,
): { stop(): Promise<void> } {
  const stopping = new AbortController()
  let isFailing = false

  async function fireBatch(): Promise<Fired[]> {
    try {
      const fired = await hints.sendAfter(changed => fireDue(sql, localTime(), changed))
      isFailing = false
      return fired
    } catch (error) {
      // Logs one error per outage instead of one per second.
      if (!isFailing) log.error({ err: error }, 'cannot read the schedule; retrying every second')
      isFailing = true
      return []
    }
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      const batch = await fireBatch()
      for (const fired of batch) observe(fired)
      if (batch.length === 0) await delay(POLL_MS, undefined, { signal: stopping.signal }).catch(() => {})
    }
  }

  const running = run()
  return {
    async stop() {
      stopping.abort()
      await running
    },
  }
}
