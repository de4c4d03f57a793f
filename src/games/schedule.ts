import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import * as users from '../accounts/users.ts'
import type { Sql } from '../db/sql.ts'
import type { LocalTime } from '../notifications/dates.ts'
import * as notifications from '../notifications/notifications.ts'
import type { DueTime } from './due.ts'
import * as games from './games.ts'
import { renderNotifications } from './messages.ts'
import { reminderOnceKey } from './planning.ts'
import type { Game } from './projection.ts'
import type { Announcement } from './recipients.ts'

/** "a start at most 15 min late" */
const START_GRACE_MS = 15 * 60_000

/** Due times a transaction takes: it holds the locks of their games for some milliseconds. */
const BATCH = 50

const POLL_MS = 1_000

/** What came of one that was due. `dropped` is too late, cancelled, moved, or told by the producer. */
export type Fired = { type: DueTime['type']; outcome: 'told' | 'dropped'; lateSeconds: number }

type Due = { game_id: number; type: DueTime['type']; due_at: Date; still: boolean }

/**
 * Tells a batch of what is due, in the transaction that takes it off the schedule, under the locks of the games: so nothing
 * is told of a game that was cancelled or moved, nothing twice, and a worker that is killed leaves it to the next. Games
 * that somebody else holds are passed over: it is theirs, or stays for the next look.
 * @returns what fired; empty when nothing is left to do now
 */
export async function fireDue(sql: Sql, clock: LocalTime): Promise<Fired[]> {
  return sql.begin(async tx => {
    const held = await games.lockDue(tx, clock.now, BATCH)
    if (held.size === 0) return []
    // A statement of its own sees what the game's last event has left, whatever the first one saw before it got the lock.
    const due = await tx<Due>`
      delete from game_schedule using game
      where game.id = game_id and game_id = any(${[...held.keys()]}::bigint[]) and due_at <= ${clock.now}
      returning game_id, type, due_at, game.starts_at = game_schedule.starts_at and not cancelled as still`
    const timely = [...Map.groupBy(due, row => row.game_id)].flatMap(([id, rows]) =>
      rows.filter(row => isTimely(row, rows, held.get(id)!, clock.now)),
    )
    const told = await tell(tx, new Map(timely.map(row => [row, announcement(held.get(row.game_id)!, row)])), clock)
    return due.map(row => ({
      type: row.type,
      outcome: told.has(row) ? 'told' : 'dropped',
      lateSeconds: (clock.now.getTime() - row.due_at.getTime()) / 1000,
    }))
  })
}

/** "of several overdue reminders the last, and only before the start; a start at most 15 min late" */
function isTimely(row: Due, rows: readonly Due[], { startsAt }: Game, now: Date): boolean {
  if (!row.still) return false
  const start = Date.parse(startsAt!)
  if (row.type === 'game_started') return now.getTime() <= start + START_GRACE_MS
  const later = rows.some(other => other.still && other.type === row.type && other.due_at > row.due_at)
  return !later && now.getTime() < start
}

/** It is told as though it had been reported, by a fact that has its notice for a name. */
function announcement(game: Game, { type, due_at }: Due): Announcement & { onceKey: string } {
  const onceKey = type === 'game_started' ? `started@${game.startsAt}` : reminderOnceKey(game, due_at)
  const event = { key: `${game.id} ${onceKey}`, type, gameId: game.id }
  return { event, type, userIds: [...game.playerIds], game, onceKey }
}

/** @returns those that nobody had told before */
async function tell(
  tx: Sql,
  announcements: Map<Due, Announcement & { onceKey: string }>,
  clock: LocalTime,
): Promise<Set<Due>> {
  if (announcements.size === 0) return new Set()
  // From now on a producer's own reminder for this start adds nothing: it is named by the start alone.
  const reminders = [...announcements.values()].filter(({ type }) => type === 'game_reminder')
  const own = reminders.map(({ game }) => ({ game, onceKey: `reminder@${game.startsAt}` }))
  const claimed = await games.claimOnceKeys(tx, [...announcements.values(), ...own], clock.now)
  const fresh = new Map([...announcements].filter(([, { event }]) => claimed.has(event.key)))
  const told = [...fresh.values()]
  const people = await users.lockForShare(tx, [...new Set(told.flatMap(({ userIds }) => userIds))])
  const rows = renderNotifications(told, people, clock)
  await notifications.store(tx, rows, clock.now)
  return new Set(fresh.keys())
}

/** How many reminders and starts wait beyond their time, and for how long the oldest of them: 0 and 0 in normal running. */
export async function countOverdue(sql: Sql, now: Date): Promise<{ waiting: number; oldestSeconds: number }> {
  const [row] = await sql<{ waiting: number; oldest: Date | null }>`
    select count(*) as waiting, min(due_at) as oldest from game_schedule where due_at <= ${now}`
  return { waiting: row!.waiting, oldestSeconds: row!.oldest ? (now.getTime() - row!.oldest.getTime()) / 1000 : 0 }
}

/**
 * Looks for what is due every second, while the process lives; every process that works may.
 * @param clock asked anew for each batch, since a text tells "today" from "tomorrow" when it is written
 * @param observe hears of each one that fired
 * @returns `stop`, which waits for the batch that is being told
 */
export function startSchedule(
  sql: Sql,
  clock: () => LocalTime,
  log: FastifyBaseLogger,
  observe: (fired: Fired) => void,
): { stop(): Promise<void> } {
  const stopping = new AbortController()
  let failing = false

  async function look(): Promise<Fired[]> {
    try {
      const fired = await fireDue(sql, clock())
      failing = false
      return fired
    } catch (error) {
      // One line, not one a second, for as long as the database is away.
      if (!failing) log.error({ err: error }, 'the schedule could not be looked at; every second again')
      failing = true
      return []
    }
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      const fired = await look()
      for (const one of fired) observe(one)
      if (fired.length === 0) await delay(POLL_MS, undefined, { signal: stopping.signal }).catch(() => {})
    }
  }

  const ran = run()
  return {
    async stop() {
      stopping.abort()
      await ran
    },
  }
}
