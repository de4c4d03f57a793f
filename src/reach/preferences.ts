import { isDeepStrictEqual } from 'node:util'
import type { Query, Sql } from '../db/sql.ts'
import { invalid } from '../errors.ts'
import { NOTIFICATION_TYPES, type NotificationType } from '../notification-types.ts'
import { isTimeZone } from '../time/wall-clock.ts'
import {
  CHANNELS,
  type Channel,
  type Choices,
  changeChoices,
  type EffectiveValues,
  type Patch,
  type PreferenceDefaults,
  resolveChoices,
} from './choices.ts'

export type { PreferenceDefaults } from './choices.ts'

/** The values that apply to a person. `version` grows with each change of their choices, and is 0 before the first. */
export type Preferences = EffectiveValues & { version: number }

type Row = {
  user_id: number
  version: number
  types: Choices['types']
  email_paused: boolean
  quiet_enabled: boolean | null
  quiet_from: string | null
  quiet_to: string | null
  time_zone: string | null
  device_zone: string | null
}

type Stored = { choices: Choices; preferences: Preferences }

/**
 * Returns the preferences of those users who exist. The time zone is the one that the person chose, otherwise the one
 * of the push subscription that was confirmed last, otherwise the default.
 */
export async function readAll(
  sql: Query,
  userIds: readonly number[],
  defaults: PreferenceDefaults,
): Promise<Map<number, Preferences>> {
  const stored = await readStored(sql, userIds, defaults)
  return new Map([...stored].map(([userId, { preferences }]) => [userId, preferences]))
}

async function readStored(
  sql: Query,
  userIds: readonly number[],
  defaults: PreferenceDefaults,
): Promise<Map<number, Stored>> {
  const rows = await sql<Row>`
    select app_user.id as user_id, coalesce(version, 0) as version, coalesce(types, '{}') as types,
      coalesce(email_paused, false) as email_paused, quiet_enabled, quiet_from, quiet_to, preference.time_zone,
      device.time_zone as device_zone
    from app_user
      left join notification_preference as preference on preference.user_id = app_user.id
      left join lateral (
        select time_zone from push_subscription
        where push_subscription.user_id = app_user.id and time_zone is not null
        order by confirmed_at desc, id desc limit 1
      ) as device on true
    where app_user.id = any(${userIds}::bigint[])`
  return new Map(rows.map(row => [row.user_id, toStored(row, defaults)]))
}

function toStored(row: Row, defaults: PreferenceDefaults): Stored {
  const quietHours = { enabled: row.quiet_enabled, from: row.quiet_from, to: row.quiet_to }
  const choices: Choices = {
    types: row.types,
    emailPaused: row.email_paused,
    quietHours: Object.fromEntries(Object.entries(quietHours).filter(([, value]) => value !== null)),
    timeZone: findKnownZone(row.time_zone),
  }
  const timeZone = findKnownZone(row.device_zone) ?? defaults.timeZone
  return { choices, preferences: { ...resolveChoices(choices, { ...defaults, timeZone }), version: row.version } }
}

/** A process with an older version of Node may not know a stored time zone. */
function findKnownZone(timeZone: string | null): string | undefined {
  return timeZone !== null && isTimeZone(timeZone) ? timeZone : undefined
}

/** Locks an account. All changes of its preferences take this lock first, so each change sees the one before. */
export async function lockAccount(tx: Sql, userId: number): Promise<boolean> {
  const locked = await tx`select id from app_user where id = ${userId} for no key update`
  return locked.length > 0
}

/**
 * Changes the choices of a user. If the quiet hours or the time zone change, or a channel of a type is turned off,
 * makes the workers check the user's deliveries.
 * @returns the new preferences, and whether it woke deliveries. Undefined if there is no such user
 * @throws AppError 422 if the quiet hours would begin and end at the same time
 */
export async function update(
  sql: Sql,
  userId: number,
  patch: Patch,
  { defaults, now }: { defaults: PreferenceDefaults; now: Date },
): Promise<{ preferences: Preferences; isWoken: boolean } | undefined> {
  return sql.begin(async tx => {
    if (!(await lockAccount(tx, userId))) return undefined
    const before = (await readStored(tx, [userId], defaults)).get(userId)!
    const choices = changeChoices(before.choices, before.preferences, patch)
    if (isDeepStrictEqual(choices, before.choices)) return { preferences: before.preferences, isWoken: false }
    await save(tx, userId, choices, now)
    const { preferences } = (await readStored(tx, [userId], defaults)).get(userId)!
    rejectEqualTimes(preferences, patch)
    const isWoken = !hasSameHours(before.preferences, preferences) || turnsOff(before.preferences, preferences)
    if (isWoken) await wakeUser(tx, userId, now)
    return { preferences, isWoken }
  })
}

/** Stores all choices of a user. The caller has locked the account. */
async function save(tx: Sql, userId: number, choices: Choices, now: Date): Promise<void> {
  const { enabled = null, from = null, to = null } = choices.quietHours
  await tx`
    insert into notification_preference as stored
      (user_id, types, email_paused, quiet_enabled, quiet_from, quiet_to, time_zone, updated_at)
    values (${userId}, ${JSON.stringify(choices.types)}, ${choices.emailPaused}, ${enabled}, ${from}, ${to},
      ${choices.timeZone ?? null}, ${now})
    on conflict (user_id) do update set types = excluded.types, email_paused = excluded.email_paused,
      quiet_enabled = excluded.quiet_enabled, quiet_from = excluded.quiet_from, quiet_to = excluded.quiet_to,
      time_zone = excluded.time_zone, version = stored.version + 1, updated_at = excluded.updated_at`
}

function rejectEqualTimes({ quietHours }: Preferences, patch: Patch): void {
  if (quietHours.from !== quietHours.to) return
  const field = patch.quietHours?.to === undefined ? 'quiet_hours.from' : 'quiet_hours.to'
  throw invalid({
    [field]: [
      {
        fr: 'Les heures calmes doivent commencer et finir à deux heures différentes.',
        en: 'The quiet hours must begin and end at different times.',
      },
    ],
  })
}

function hasSameHours(one: Preferences, other: Preferences): boolean {
  return isDeepStrictEqual([one.quietHours, one.timeZone], [other.quietHours, other.timeZone])
}

/**
 * Returns whether a change turns a channel of a type off. The workers then drop the waiting deliveries of this channel
 * and type. Otherwise, a delivery that waits for the end of quiet hours would still leave if the user turned the
 * channel on again.
 */
function turnsOff(before: Preferences, after: Preferences): boolean {
  const isOn = (preferences: Preferences, type: NotificationType, channel: Channel) =>
    preferences.types[type][channel] && !(channel === 'email' && preferences.emailPaused)
  return NOTIFICATION_TYPES.some(type =>
    CHANNELS.some(channel => isOn(before, type, channel) && !isOn(after, type, channel)),
  )
}

/**
 * Turns e-mail off for a user, for one type or for all of them, and makes the workers drop the waiting mails. Does
 * nothing if there is no such user. A repeated call only reads, because the service does not limit how often people
 * follow a link.
 * @param type undefined to pause all mails about notifications
 */
export async function pauseEmail(
  sql: Sql,
  userId: number,
  type: NotificationType | undefined,
  now: Date,
): Promise<void> {
  const off = await sql`
    select user_id from notification_preference
    where user_id = ${userId}
      and case when ${type ?? null}::text is null then email_paused
        else types -> ${type ?? null}::text -> 'email' = 'false' end`
  if (off.length > 0) return
  await sql.begin(async tx => {
    if (!(await lockAccount(tx, userId))) return
    const types = type === undefined ? {} : { [type]: { email: false } }
    await tx`
      insert into notification_preference as stored (user_id, types, email_paused, updated_at)
      values (${userId}, ${JSON.stringify(types)}, ${type === undefined}, ${now})
      on conflict (user_id) do update set
        types = case when ${type ?? null}::text is null then stored.types
          else stored.types || jsonb_build_object(${type ?? null}::text,
            coalesce(stored.types -> ${type ?? null}::text, '{}') || '{"email": false}') end,
        email_paused = stored.email_paused or excluded.email_paused,
        version = stored.version + 1, updated_at = excluded.updated_at`
    await wakeUser(tx, userId, now)
  })
}

/**
 * Makes the workers check all waiting deliveries and mails of a user immediately. Call this in the transaction that
 * changes the user's preferences, after the lock of the account.
 */
export async function wakeUser(tx: Sql, userId: number, now: Date): Promise<void> {
  await tx`
    update outbox set ready = true, due = ${now}
    where id in (select id from outbox where user_id = ${userId} and not ready order by id for update)`
  await tx`
    update waiting_mail set look_at = ${now}
    where user_id = ${userId} and notification_id in (
      select notification_id from waiting_mail where user_id = ${userId} and look_at > ${now}
      order by notification_id for update)`
}

/** Returns the choices of a user for the command `users export`. */
export async function exportUserData(sql: Sql, userId: number) {
  const [row] = await sql`
    select types, email_paused, quiet_enabled, quiet_from, quiet_to, time_zone, updated_at
    from notification_preference where user_id = ${userId}`
  return row ?? null
}
