import { lockForShare } from '../accounts/users.ts'
import { type Hints, OUTBOX_HINT } from '../db/hints.ts'
import type { Database, Sql } from '../db/sql.ts'
import * as games from '../games/games.ts'
import type { Announced } from '../notifications/queue-deliveries.ts'
import { readUnread, type UnreadNotification } from '../notifications/unread.ts'
import { type MailDelays, wantsMail } from './plan-mail.ts'
import { type PreferenceDefaults, readAll } from './preferences.ts'
import { PUSH_CLASSES } from './push-look.ts'
import { computeDeadline, findGameId, type GameState, toTimed } from './timing.ts'
import { addWaiting } from './waiting-mail.ts'

export type ExpandDeps = MailDelays & {
  sql: Database
  hints: Hints
  now: () => Date
  preferenceDefaults: PreferenceDefaults
  /** Whether this installation sends mails about unread notifications. */
  sendsMails: boolean
  /** Returns the keyed hash by which receivers take turns in the outbox. */
  hashReceiver: (userId: number) => Promise<Buffer>
}

type Delivery = { id: number; lease: string; payload: unknown }
type Item = { notification: UnreadNotification; game: GameState | undefined; isUrgent: boolean }

/**
 * Creates the function that makes the deliveries of new notifications: a push for each device of their readers, and a
 * row of `waiting_mail`. It does this in one transaction, which also deletes the row of the outbox that names the
 * notifications. So if the process is killed, either all deliveries exist or another worker makes them.
 *
 * A channel that is off for a type gets no delivery. Deleted accounts and read notifications get none either.
 */
export function createExpander(deps: ExpandDeps) {
  return async ({ id, lease, payload }: Delivery): Promise<{ outcome: string; isReleased: true }> => {
    const isTaken = await deps.hints.sendAfter(changed =>
      deps.sql.begin(async tx => {
        const taken = await tx`delete from outbox where id = ${id} and lease = ${lease} returning id`
        if (taken.length === 0) return false
        await makeDeliveries(tx, payload as Announced[], deps)
        changed.add(OUTBOX_HINT)
        return true
      }),
    )
    return { outcome: isTaken ? 'delivered' : 'lost', isReleased: true }
  }
}

async function makeDeliveries(tx: Sql, announced: readonly Announced[], deps: ExpandDeps): Promise<void> {
  const people = await lockForShare(tx, [...new Set(announced.map(({ user }) => user))])
  const known = announced.filter(({ user }) => people.has(user))
  if (known.length === 0) return
  const notifications = await readUnread(
    tx,
    known.map(({ user, notification }) => ({ userId: user, id: notification })),
  )
  const gameIds = new Set(notifications.map(findGameId).filter(id => id !== null))
  const [preferences, states] = await Promise.all([
    readAll(tx, [...people.keys()], deps.preferenceDefaults),
    games.readStates(tx, [...gameIds]),
  ])
  const urgentIds = new Set(known.filter(({ urgent }) => urgent).map(({ notification }) => notification))
  const items = notifications.map((notification): Item => {
    const gameId = findGameId(notification)
    const game = gameId === null ? undefined : states.get(gameId)
    return { notification, game, isUrgent: urgentIds.has(notification.id) }
  })
  const find = ({ notification: { userId } }: Item) => preferences.get(userId)!
  const pushed = items.filter(item => find(item).types[item.notification.type].push)
  await addPushes(tx, pushed, deps)
  if (deps.sendsMails) {
    const mailed = items.filter(item => wantsMail(find(item), item.notification.type))
    await addWaiting(
      tx,
      mailed.map(item => toWaiting(item, deps)),
    )
  }
}

/** Adds a push for each device of the readers. A device gets at most one push about a notification. */
async function addPushes(tx: Sql, items: readonly Item[], { hashReceiver, now }: ExpandDeps): Promise<void> {
  if (items.length === 0) return
  const column = <T>(read: (notification: UnreadNotification) => T) => items.map(item => read(item.notification))
  const networks = await Promise.all(column(({ userId }) => hashReceiver(userId)))
  const classes = items.map(({ isUrgent }) => (isUrgent ? PUSH_CLASSES.urgent : PUSH_CLASSES.other))
  const deadlines = items.map(({ notification, game }) =>
    computeDeadline(toTimed(notification), game, notification.createdAt),
  )
  await tx`
    insert into outbox (channel, class, network, created_at, due, user_id, game_id, notification_id, subscription_id,
      deadline, payload)
    select 'push', class, network, new.created_at, ${now()}, new.user_id, game_id, notification_id, device.id, deadline, '{}'
    from unnest(${column(({ userId }) => userId)}::bigint[], ${column(findGameId)}::bigint[],
        ${column(({ id }) => id)}::bigint[], ${column(({ createdAt }) => createdAt)}::timestamptz[],
        ${networks}::bytea[], ${classes}::smallint[], ${deadlines}::timestamptz[])
      as new (user_id, game_id, notification_id, created_at, network, class, deadline)
      join push_subscription as device on device.user_id = new.user_id
    order by notification_id, device.id
    on conflict (subscription_id, notification_id) where subscription_id is not null do nothing`
}

function toWaiting({ notification, isUrgent }: Item, { emailAfterMs, emailAfterUrgentMs }: ExpandDeps) {
  const { id, userId, createdAt } = notification
  const lookAt = new Date(createdAt.getTime() + (isUrgent ? emailAfterUrgentMs : emailAfterMs))
  return { userId, notificationId: id, gameId: findGameId(notification), isUrgent, createdAt, lookAt }
}
