import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import type { Duration } from '../config.ts'
import type { Sql } from '../db/sql.ts'
import type { Clock } from '../notifications/dates.ts'
import * as notifications from '../notifications/notifications.ts'
import * as users from '../users/users.ts'
import { type Planned, planned } from './due.ts'
import type { Fact } from './fact.ts'
import * as games from './games.ts'
import { compose } from './messages.ts'
import type { Game } from './projection.ts'
import type { Telling } from './recipients.ts'

/** The reader's clock, and how long before a game its players are reminded. */
export type Agenda = Clock & { reminderOffsets: readonly Duration[] }

/** "a start at most 15 min late" */
const START_GRACE_MS = 15 * 60_000

/** Games a transaction takes: it holds their locks for some milliseconds. */
const BATCH = 50

const LOOK_MS = 1_000

/**
 * Plans what locked games have become, in the event's own transaction: what was planned for another start, or for a game that is
 * cancelled, goes; what is due later than now is added.
 */
export async function plan(sql: Sql, changed: readonly Game[], agenda: Agenda): Promise<void> {
  if (changed.length === 0) return
  const rows = changed.flatMap(({ id, startsAt, cancelled }) => {
    if (cancelled || startsAt === null) return []
    return planned(new Date(startsAt), agenda.reminderOffsets, agenda.timeZone)
      .filter(({ dueAt }) => dueAt > agenda.now)
      .map(({ type, dueAt }) => ({ game_id: id, type, due_at: dueAt, starts_at: startsAt }))
  })
  await sql`
    with wanted as (
      select game_id, type, due_at, starts_at
      from json_to_recordset(${JSON.stringify(rows)}::json)
        as planned (game_id bigint, type text, due_at timestamptz, starts_at timestamptz)
    ), gone as (
      delete from game_schedule as old
      where game_id = any(${changed.map(game => game.id)}::bigint[]) and not exists (
        select from wanted
        where wanted.game_id = old.game_id and wanted.type = old.type and wanted.starts_at = old.starts_at)
    )
    insert into game_schedule (game_id, type, due_at, starts_at)
    select game_id, type, due_at, starts_at from wanted
    on conflict on constraint game_schedule_pkey do update set starts_at = excluded.starts_at`
}

/** What came of one that was due. */
export type Fired = { type: Planned['type']; outcome: 'told' | 'dropped'; lateSeconds: number }

/**
 * Tells what is due, each in the transaction that takes it off the schedule, under its game's lock: so nothing is told of a
 * game that was cancelled or moved, nothing twice, and a worker that is killed leaves it to the next. Games that somebody
 * else holds are left to them.
 */
export async function fireDue(sql: Sql, clock: Clock): Promise<Fired[]> {
  const fired: Fired[] = []
  for (;;) {
    const batch = await sql.begin(tx => fireBatch(tx, clock))
    fired.push(...batch)
    if (batch.length === 0) return fired
  }
}

async function fireBatch(tx: Sql, clock: Clock): Promise<Fired[]> {
  const held = await games.lockDue(tx, clock.now, BATCH)
  if (held.length === 0) return []
  const rows = await tx<{ game_id: number; type: Planned['type']; due_at: Date; still: boolean }>`
    delete from game_schedule using game
    where game.id = game_id and game_id = any(${held.map(game => game.id)}::bigint[]) and due_at <= ${clock.now}
    returning game_id, game_schedule.type, due_at,
      game.starts_at is not distinct from game_schedule.starts_at and not cancelled as still`
  const due = held.flatMap(game => {
    const own = rows.filter(row => row.game_id === game.id)
    const reminders = own.filter(row => row.type === 'game_reminder')
    const last = Math.max(...reminders.map(row => row.due_at.getTime()))
    return own.map(row => {
      const startsAt = Date.parse(game.startsAt ?? '')
      // "of several overdue reminders the last, and only before the start; a start at most 15 min late"
      const timely =
        row.type === 'game_reminder'
          ? row.due_at.getTime() === last && clock.now.getTime() < startsAt
          : clock.now.getTime() <= startsAt + START_GRACE_MS
      return { game, row, timely: row.still && timely }
    })
  })
  const tellings = due.filter(({ timely }) => timely).map(({ game, row }) => telling(game, row))
  const told = await tell(tx, tellings, clock)
  return due.map(({ game, row }) => ({
    type: row.type,
    outcome: told.has(keyOf(game, row)) ? 'told' : 'dropped',
    lateSeconds: (clock.now.getTime() - row.due_at.getTime()) / 1000,
  }))
}

type Due = { type: Planned['type']; due_at: Date }

/** What names this one among all that is ever told of a game. A start is the same whoever tells it. */
function noticeOf(game: Game, { type, due_at }: Due): string {
  return type === 'game_started' ? `started@${game.startsAt}` : `reminder@${game.startsAt} due ${due_at.toISOString()}`
}

function keyOf(game: Game, due: Due): string {
  return `${game.id} ${noticeOf(game, due)}`
}

/** It is told as though it had been reported: by a fact that has its notice for a name. */
function telling(game: Game, due: Due): Telling {
  const fact: Fact = {
    id: '',
    key: keyOf(game, due),
    digest: '',
    type: due.type,
    time: due.due_at.toISOString(),
    gameId: game.id,
    creatorId: game.creatorId ?? 0,
    playerIds: game.playerIds,
    startsAt: game.startsAt ?? undefined,
  }
  return { fact, type: due.type, userIds: [...game.playerIds], game, notice: noticeOf(game, due) }
}

/** @returns the keys of those that nobody had told before */
async function tell(tx: Sql, tellings: Telling[], clock: Clock): Promise<Set<string>> {
  if (tellings.length === 0) return new Set()
  // A producer's own reminder for this start adds nothing from now on: it looks for the notice without a due time.
  const any = tellings
    .filter(({ type }) => type === 'game_reminder')
    .map(({ game }) => ({ game, notice: `reminder@${game.startsAt}` }))
  const claimed = await games.claimNotices(tx, [...tellings, ...any], clock.now)
  const fresh = tellings.filter(({ fact }) => claimed.has(fact.key))
  const people = await users.hold(tx, [...new Set(fresh.flatMap(({ userIds }) => userIds))])
  await notifications.deliver(tx, compose(fresh, people, clock), clock.now)
  return new Set(fresh.map(({ fact }) => fact.key))
}

/**
 * Looks for what is due every second, while the process lives.
 * @param observe hears of each one that fired
 * @returns `stop`, which waits for what is being told
 */
export function startSchedule(
  sql: Sql,
  clock: () => Clock,
  log: FastifyBaseLogger,
  observe: (fired: Fired) => void,
): { stop(): Promise<void> } {
  const stopping = new AbortController()
  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      try {
        for (const fired of await fireDue(sql, clock())) observe(fired)
      } catch (error) {
        log.error({ err: error }, 'the schedule could not be looked at; soon again')
      }
      await delay(LOOK_MS, undefined, { signal: stopping.signal }).catch(() => {})
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
