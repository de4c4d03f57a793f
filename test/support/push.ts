import { createECDH, randomBytes } from 'node:crypto'
import type { Sql } from '../../src/db/sql.ts'
import { timestamp } from '../../src/http/format/timestamp.ts'
import { claim, type Delivery } from '../../src/outbox/outbox.ts'
import type { PushClient } from '../../src/reach/push-client.ts'
import { createFindEndpoint } from '../../src/reach/push-hosts.ts'
import { PUSH_CLASSES } from '../../src/reach/push-look.ts'
import { createReport } from '../../src/reach/push-report.ts'
import { createVapid } from '../../src/reach/vapid.ts'
import { SETTINGS } from '../../src/settings.ts'
import { type Harness, VAPID_KEY } from './app.ts'
import { makeNotificationsSilently, makeUser } from './factories.ts'
import { newGameId } from './games.ts'
import type { PushService } from './push-service.ts'
import { readPayload } from './scenario.ts'

/** Returns a push subscription as a browser's `PushSubscription.toJSON()` does, with a new endpoint. */
export function newSubscription(base = 'https://fcm.googleapis.com/fcm/send') {
  return { endpoint: `${base}/${randomBytes(12).toString('base64url')}`, keys: newBrowserKeys() }
}

export function newBrowserKeys() {
  const p256dh = createECDH('prime256v1').generateKeys('base64url')
  return { p256dh, auth: randomBytes(16).toString('base64url') }
}

/** Everything that a push needs: a user with a session, a subscription, a game and an unread notification. */
export type Pushable = {
  userId: number
  token: string
  gameId: number
  notificationId: number
  subscriptionId: number
  endpoint: string
}

type PushableOptions = {
  type?: string
  message?: string
  startsAt?: Date
  data?: Record<string, unknown>
  publicKey?: string
  endpoint?: string
}

/** Stores what a push needs, with a subscription at a push service of the tests. */
export async function makePushable(
  h: Harness,
  service: Pick<PushService, 'subscribe'>,
  { type = 'game_full', message = 'Vous êtes 4 sur 4.', publicKey = PUBLIC_KEY, ...options }: PushableOptions = {},
): Promise<Pushable> {
  const { sql } = h.database
  const now = h.ctx.now()
  const startsAt = options.startsAt ?? new Date(now.getTime() + 86_400_000)
  const user = await makeUser(h)
  const gameId = newGameId()
  await sql`
    insert into game (id, player_ids, starts_at, updated_at) values (${gameId}, ${[user.id]}, ${startsAt}, ${now})`
  const data = options.data ?? { game_id: gameId, starts_at: timestamp(startsAt) }
  const [notificationId] = await makeNotificationsSilently(h, user.id, 1, { type, title: 'Titre', message, data })
  const { endpoint, keys } = service.subscribe()
  const [subscription] = await sql<{ id: number }>`
    insert into push_subscription (user_id, session_id, endpoint, p256dh, auth, public_key, created_at, confirmed_at)
    values (${user.id}, ${readPayload(user.token).sid}, ${options.endpoint ?? endpoint}, ${keys.p256dh}, ${keys.auth},
      ${publicKey}, ${now}, ${now})
    returning id`
  return {
    userId: user.id,
    token: user.token,
    gameId,
    notificationId: notificationId!,
    subscriptionId: subscription!.id,
    endpoint,
  }
}

type QueueOptions = {
  isUrgent?: boolean
  deadline?: Date
  gameId?: number | null
  notificationId?: number
  failedAttempts?: number
}

/** Adds a push to the outbox, as the announcement of its notification does. @returns the id of the row */
export async function queuePush(sql: Sql, pushable: Pushable, now: Date, options: QueueOptions = {}): Promise<number> {
  const deadline = options.deadline ?? new Date(now.getTime() + 3_600_000)
  const gameId = options.gameId === undefined ? pushable.gameId : options.gameId
  const [row] = await sql<{ id: number }>`
    insert into outbox (channel, class, network, created_at, due, user_id, game_id, notification_id, subscription_id,
      deadline, attempts, payload)
    values ('push', ${options.isUrgent ? PUSH_CLASSES.urgent : PUSH_CLASSES.other},
      ${Buffer.from(String(pushable.userId))}, ${now}, ${now}, ${pushable.userId}, ${gameId},
      ${options.notificationId ?? pushable.notificationId}, ${pushable.subscriptionId}, ${deadline}, ${options.failedAttempts ?? 0}, '{}')
    returning id`
  return row!.id
}

/** Claims the next push of the outbox, as a worker does. */
export async function claimPush(sql: Sql): Promise<Delivery> {
  const lastNetworks = new Map(Object.values(PUSH_CLASSES).map(each => [each, Buffer.alloc(0)]))
  const [delivery] = await claim(sql, { channel: 'push', limit: 1, lastNetworks, lapsedBefore: undefined })
  return delivery!
}

/** Returns what the worker of a process needs to send pushes to a push service of the tests. */
export function pushDependencies({ ctx }: Harness, service: Pick<PushService, 'hosts'>, client: PushClient) {
  return {
    ...ctx,
    defaults: ctx.config.preferenceDefaults,
    links: { template: 'https://app.example/games/{game_id}', app: 'https://app.example', public: undefined },
    vapid: createVapid([VAPID_KEY], 'mailto:admin@club.example'),
    findEndpoint: createFindEndpoint(SETTINGS.PUSH_HOSTS.parse(service.hosts)),
    client,
    report: createReport(ctx.log),
  }
}

/** The public key of `VAPID_KEY`. */
export const [PUBLIC_KEY] = createVapid([VAPID_KEY], '').publicKeys as [string]
