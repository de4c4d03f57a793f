import type { FastifyBaseLogger } from 'fastify'
import { type Hints, OUTBOX_HINT } from '../db/hints.ts'
import type { Database, Sql } from '../db/sql.ts'
import * as games from '../games/games.ts'
import { startLoop } from '../loop.ts'
import { readUnread, type UnreadNotification } from '../notifications/unread.ts'
import { lockStates, saveMails } from './mail-state.ts'
import { type MailDelays, type MailState, planMail } from './plan-mail.ts'
import { type PreferenceDefaults, readAll } from './preferences.ts'
import type { GameState } from './timing.ts'

/** The maximum number of people in one transaction. It locks them and their games for a few milliseconds. */
const BATCH_SIZE = 50
const POLL_MS = 1_000

/** A new row of `waiting_mail`. */
export type NewWaiting = {
  userId: number
  notificationId: number
  gameId: number | null
  isUrgent: boolean
  createdAt: Date
  lookAt: Date
}

type Row = { user_id: number; id: number; game_id: number | null; urgent: boolean; created_at: Date }

export type SweepDeps = MailDelays & {
  sql: Database
  hints: Hints
  now: () => Date
  preferenceDefaults: PreferenceDefaults
  /** Returns the keyed hash by which receivers take turns in the outbox. */
  hashReceiver: (userId: number) => Promise<Buffer>
}

/** Adds notifications that a mail will mention if they stay unread. The caller has locked the accounts. */
export async function addWaiting(tx: Sql, rows: readonly NewWaiting[]): Promise<void> {
  if (rows.length === 0) return
  const column = <K extends keyof NewWaiting>(name: K) => rows.map(row => row[name])
  await Promise.all([
    tx`
      insert into mail_state (user_id) select distinct id from unnest(${column('userId')}::bigint[]) as person (id)
      order by id
      on conflict (user_id) do nothing`,
    tx`
      insert into waiting_mail (user_id, notification_id, game_id, urgent, created_at, look_at)
      select * from unnest(${column('userId')}::bigint[], ${column('notificationId')}::bigint[],
        ${column('gameId')}::bigint[], ${column('isUrgent')}::boolean[], ${column('createdAt')}::timestamptz[],
        ${column('lookAt')}::timestamptz[])
      on conflict (user_id, notification_id) do nothing`,
  ])
}

/**
 * Handles a batch of people with a waiting notification whose time has come, in one transaction. It drops
 * notifications, lets others wait, or adds a mail to the outbox and deletes the rows that the mail mentions. Any number
 * of workers may call this function at the same time, because each locks different rows of `mail_state`.
 *
 * The transaction locks the games and then the accounts before it reads events and preferences. A change of quiet hours
 * or of a game waits for these locks, and then wakes the rows that this transaction has deferred.
 * @returns the number of people whom this call has handled
 */
export async function sweep(deps: SweepDeps): Promise<number> {
  const now = deps.now()
  return deps.hints.sendAfter(changed =>
    deps.sql.begin(async tx => {
      const { userIds, gameIds } = await findDue(tx, now)
      if (userIds.length === 0) return 0
      const [, , states] = await Promise.all([
        tx`select id from game where id = any(${gameIds}::bigint[]) order by id for share`,
        tx`select id from app_user where id = any(${userIds}::bigint[]) order by id for share`,
        lockStates(tx, userIds, now),
      ])
      const { handled, mailed } = await sweepLocked(tx, states, new Set(gameIds), { ...deps, at: now })
      if (mailed > 0) changed.add(OUTBOX_HINT)
      return handled
    }),
  )
}

/** Returns people with rows whose time has come, and the games of these rows. */
async function findDue(tx: Sql, now: Date): Promise<{ userIds: number[]; gameIds: number[] }> {
  const rows = await tx<{ user_id: number; game_ids: number[] }>`
    with first as (
      select user_id, look_at from waiting_mail where look_at <= ${now} order by look_at limit ${BATCH_SIZE * 20}
    ), person as (
      select user_id from first group by user_id order by min(look_at) limit ${BATCH_SIZE}
    )
    select person.user_id, array_remove(array_agg(distinct game_id), null) as game_ids
    from person join waiting_mail using (user_id)
    where look_at <= ${now}
    group by person.user_id`
  return { userIds: rows.map(row => row.user_id), gameIds: [...new Set(rows.flatMap(row => row.game_ids))] }
}

/** Handles the due rows of locked people. @returns the number of these people, and the number of their mails */
async function sweepLocked(
  tx: Sql,
  states: ReadonlyMap<number, MailState>,
  lockedGames: ReadonlySet<number>,
  { at: now, preferenceDefaults, hashReceiver, ...delays }: SweepDeps & { at: Date },
): Promise<{ handled: number; mailed: number }> {
  const rows = await tx<Row>`
    select user_id, notification_id as id, game_id, urgent, created_at from waiting_mail
    where user_id = any(${[...states.keys()]}::bigint[]) and look_at <= ${now}
    order by user_id, notification_id`
  const byUser = Map.groupBy(rows, row => row.user_id)
  // A row may have become due after the games were locked. The next call then handles the person.
  for (const [userId, own] of byUser) {
    if (own.some(row => row.game_id !== null && !lockedGames.has(row.game_id))) byUser.delete(userId)
  }
  if (byUser.size === 0) return { handled: 0, mailed: 0 }
  const [preferences, notifications, known] = await Promise.all([
    readAll(tx, [...byUser.keys()], preferenceDefaults),
    readUnread(
      tx,
      rows.map(({ user_id, id }) => ({ userId: user_id, id })),
    ),
    games.readStates(tx, [...lockedGames]),
  ])
  const unread = new Map(notifications.map(notification => [notification.id, notification]))
  const plans = [...byUser].map(([userId, own]) => {
    const waiting = own.map(row => toWaiting(row, unread, known))
    return { userId, ...planMail(waiting, states.get(userId)!, preferences.get(userId)!, { ...delays, now }) }
  })
  await removeRows(
    tx,
    plans.flatMap(({ userId, dropped, mail }) => toPairs(userId, [...dropped, ...(mail?.ids ?? [])])),
  )
  await holdRows(
    tx,
    plans.flatMap(({ userId, held }) => held.map(row => ({ userId, ...row }))),
  )
  const mails = plans.flatMap(({ userId, mail }) => (mail ? [{ userId, ...mail }] : []))
  await saveMails(tx, mails, hashReceiver, now)
  return { handled: byUser.size, mailed: mails.length }
}

function toWaiting(row: Row, unread: ReadonlyMap<number, UnreadNotification>, known: ReadonlyMap<number, GameState>) {
  return {
    id: row.id,
    isUrgent: row.urgent,
    createdAt: row.created_at,
    notification: unread.get(row.id),
    game: row.game_id === null ? undefined : known.get(row.game_id),
  }
}

function toPairs(userId: number, ids: readonly number[]) {
  return ids.map(id => ({ userId, id }))
}

async function removeRows(tx: Sql, rows: readonly { userId: number; id: number }[]): Promise<void> {
  if (rows.length === 0) return
  await tx`
    delete from waiting_mail using unnest(${rows.map(row => row.userId)}::bigint[], ${rows.map(row => row.id)}::bigint[])
      as done (user_id, id)
    where waiting_mail.user_id = done.user_id and notification_id = done.id`
}

async function holdRows(tx: Sql, rows: readonly { userId: number; id: number; until: Date }[]): Promise<void> {
  if (rows.length === 0) return
  await tx`
    update waiting_mail set look_at = held.until
    from unnest(${rows.map(row => row.userId)}::bigint[], ${rows.map(row => row.id)}::bigint[],
      ${rows.map(row => row.until)}::timestamptz[]) as held (user_id, id, until)
    where waiting_mail.user_id = held.user_id and notification_id = held.id`
}

/** Calls `sweep` each second until `stop` is called, and immediately again while many people are due. */
export function startSweeping(deps: SweepDeps, log: FastifyBaseLogger): { stop(): Promise<void> } {
  let isStopped = false
  const loop = startLoop(POLL_MS, async () => (await sweep(deps)) === BATCH_SIZE, {
    isOver: () => isStopped,
    onFailure: error => log.error({ err: error }, 'cannot read the unread notifications for mails; retrying'),
  })
  return {
    async stop() {
      isStopped = true
      loop.wake()
      await loop.ended
    },
  }
}
