import { createHash } from 'node:crypto'
import { createTokens } from '../src/auth/jwt.ts'
import { deriveKeys } from '../src/keys.ts'
import { fillInBulk } from './bulk.ts'
import { administer } from './postgres.ts'
import { JWT_SECRET } from './programs.ts'

/** `unread`: whether all notifications are unread. By default, a quarter of them is. */
export type Seed = { users: number; notifications: number; unread?: boolean }

/** A signed-in user. */
export type Caller = { userId: number; token: string }

/** Returns the SQL of the columns of a typical notification. The SQL uses the row number `i`. */
function notificationColumns(users: number, unread = false): string {
  return `1 + (i - 1) % ${users} as user_id, 'game_joined' as type, 'Un joueur a rejoint la partie' as title,
    'Marie a rejoint la partie du samedi 16 janvier 2027 à 18 h 00 (3/4).' as message,
    json_build_object('game_id', i / 3, 'actor_id', 1 + i % ${users}, 'starts_at', '2027-01-16T17:00:00+00:00') as data,
    case when ${unread} or (i - 1) / ${users} % 4 = 3 then null else now() - interval '1 day' end as read_at,
    now() - interval '2 days' as created_at, now() - interval '1 day' as updated_at`
}

/**
 * Fills a migrated database with users and their notifications. The ids of the users start at 1. Each user has a
 * session. The notifications are stored in rounds. In each round, every user gets one notification, so the
 * notifications of one user are far apart in the table, as in production. The notifications of every fourth round are
 * unread. There is one event and one game for every three notifications.
 */
export async function seedService(url: string, { users, notifications, unread }: Seed): Promise<void> {
  await administer(
    url,
    `insert into app_user (id, email, first_name, last_name, locale, game_level_id, terms_version, terms_accepted_at,
      created_at, updated_at)
    overriding system value
    select i, 'user' || i || '@example.com', 'Marie', 'Durand', 'fr', 1 + i % 8, '1', now(), now(), now()
    from generate_series(1, ${users}) as i`,
  )
  await administer(
    url,
    `insert into session (id, user_id, created_at, expires_at, issued_at, presented)
    select md5('session ' || i)::uuid, i, now(), now() + interval '7 days', now(), 1
    from generate_series(1, ${users}) as i`,
  )
  await fillInBulk(url, 'notification', () =>
    administer(
      url,
      `insert into notification (id, user_id, type, title, message, data, read_at, created_at, updated_at, dedup_key,
        actor_id, locale, actor_name_length)
      overriding system value
      select i, ${notificationColumns(users, unread)}, 'seed-' || i / 3 || '/game_joined', 1 + i % ${users}, 'fr', 5
      from generate_series(1, ${notifications}) as i`,
    ),
  )
  await seedGames(url, users, Math.floor(notifications / 3))
  await seedCodes(url, Math.ceil(users / 10))
  await administer(
    url,
    `select setval(pg_get_serial_sequence('app_user', 'id'), ${users}),
      setval(pg_get_serial_sequence('notification', 'id'), ${notifications})`,
  )
  await administer(
    url,
    `vacuum analyze notification, app_user, session, event, game, game_schedule, game_notice, sign_in_address,
      sign_in_code, throttle`,
  )
}

async function seedGames(url: string, users: number, games: number): Promise<void> {
  await fillInBulk(url, 'event', () =>
    administer(
      url,
      `insert into event (key, digest, type, notifications, received_at)
      select translate(encode(sha256(('event ' || i)::bytea), 'base64'), '=', ''), 'digest', 'game_joined', 3, now()
      from generate_series(1, ${games}) as i`,
    ),
  )
  await administer(
    url,
    `insert into game (id, creator_id, player_ids, starts_at, fact_time, updated_at)
    select i, 1 + i % ${users}, array[1 + i % ${users}, 1 + (i + 7) % ${users}, 1 + (i + 13) % ${users}],
      now() - interval '1 day', now() - interval '2 days', now()
    from generate_series(1, ${games}) as i`,
  )
  // Every second game has a scheduled game start in the future.
  await administer(
    url,
    `insert into game_schedule (game_id, starts_at, type, due_at)
    select i, now() + interval '5 days', 'game_started', now() + interval '5 days'
    from generate_series(1, ${games}, 2) as i`,
  )
  await administer(
    url,
    `insert into game_notice (game_id, notice, created_at)
    select i, 'started@2026-01-17T17:00:00.000000Z', now() from generate_series(1, ${games}, 2) as i`,
  )
}

/** Adds addresses with an expired code, and a row in the table `throttle` for each address. */
async function seedCodes(url: string, addresses: number): Promise<void> {
  await administer(
    url,
    `with address as (
      insert into sign_in_address (email, sent_at, mailed)
      select 'waiting' || i || '@example.com', now() - interval '1 hour', true
      from generate_series(1, ${addresses}) as i
      returning email
    ), code as (
      insert into sign_in_code (id, email, purpose, mac, sent_at, expires_at)
      select gen_random_uuid(), email, 'sign_in', 'mac', now() - interval '1 hour', now() - interval '45 minutes'
      from address
    )
    insert into throttle (key, points, expire) select email, 1, 0 from address`,
  )
}

/**
 * Creates the notification table of the program `express-prisma`, as Prisma's migrations do. Fills the table with the
 * same notifications as `seedService`.
 */
export async function seedInbox(url: string, { users, notifications, unread }: Seed): Promise<void> {
  await administer(
    url,
    `create table notifications (id serial primary key, user_id integer not null, type text not null,
      title text not null, message text not null, data jsonb, read_at timestamptz, created_at timestamptz not null default current_timestamp,
      updated_at timestamptz not null)`,
  )
  await administer(
    url,
    `insert into notifications (id, user_id, type, title, message, data, read_at, created_at, updated_at)
    select i, ${notificationColumns(users, unread)} from generate_series(1, ${notifications}) as i`,
  )
  await administer(url, 'create index notifications_user_id_idx on notifications (user_id)')
  await administer(url, 'vacuum analyze')
}

const tokens = createTokens(deriveKeys([JWT_SECRET]))

/**
 * Makes tokens with the same claims and the same signature as the tokens of the service.
 * @param users the ids of the users. A number n stands for the ids from 1 to n.
 */
export function callers(users: number | number[]): Caller[] {
  const iat = Math.floor(Date.now() / 1000)
  const userIds = typeof users === 'number' ? Array.from({ length: users }, (_, index) => index + 1) : users
  return userIds.map(userId => {
    const hex = createHash('md5').update(`session ${userId}`).digest('hex')
    const sid = hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
    return { userId, token: tokens.sign({ sub: userId, sid, generation: 1, iat, nbf: iat, exp: iat + 3600 }) }
  })
}

/** Returns the id of a random notification of a user. */
export function pickNotificationId(userId: number, { users, notifications }: Seed): number {
  return userId + users * Math.floor(Math.random() * Math.floor(notifications / users))
}

/** Creates the tables in which the ceiling stores codes and their mails. */
export async function createCeilingTables(url: string): Promise<void> {
  await administer(
    url,
    `create table ceiling_code (id uuid primary key, email text not null unique, mac bytea not null,
      attempts smallint not null default 0, first_name text, last_name text, expires_at timestamptz not null)`,
  )
  await administer(url, 'create table ceiling_mail (id uuid primary key, email text not null, sealed text not null)')
}
