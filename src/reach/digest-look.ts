import { isDeepStrictEqual } from 'node:util'
import type { Query } from '../db/sql.ts'
import * as games from '../games/games.ts'
import type { Language } from '../language.ts'
import { readUnread, type UnreadNotification } from '../notifications/unread.ts'
import { IS_BOUNCING } from './mail-state.ts'
import { wantsMail } from './plan-mail.ts'
import { type PreferenceDefaults, readAll } from './preferences.ts'
import { findDelay, findGameId, isStale, toTimed } from './timing.ts'

export type LookDeps = { sql: Query; now: () => Date; preferenceDefaults: PreferenceDefaults }

type Person = { email: string; first_name: string; locale: Language; is_bouncing: boolean | null }

/**
 * The unread notifications that a mail may mention at the time `at`, newest first. `isQuiet` means that all of it waits
 * for the end of quiet hours.
 */
export type Look = { at: Date; person: Person; notifications: UnreadNotification[]; isQuiet: boolean }

/** The reason why no mail may leave. */
export type NoMail = 'gone' | 'bounced' | 'read' | 'off' | 'stale'

/** Reads what a mail to a user may mention now. */
export async function look(
  { sql, now, preferenceDefaults }: LookDeps,
  userId: number,
  ids: readonly number[],
): Promise<Look | NoMail> {
  const at = now()
  const wanted = ids.map(id => ({ userId, id }))
  const [[person], unread, allPreferences] = await Promise.all([
    sql<Person>`
      select email, first_name, locale, ${IS_BOUNCING} as is_bouncing
      from app_user left join mail_state on mail_state.user_id = app_user.id where app_user.id = ${userId}`,
    readUnread(sql, wanted),
    readAll(sql, [userId], preferenceDefaults),
  ])
  const preferences = allPreferences.get(userId)
  if (!person || !preferences) return 'gone'
  if (person.is_bouncing) return 'bounced'
  if (unread.length === 0) return 'read'
  const on = unread.filter(({ type }) => wantsMail(preferences, type))
  if (on.length === 0) return 'off'
  const states = await games.readStates(
    sql,
    on.map(findGameId).filter(id => id !== null),
  )
  const findGame = (notification: UnreadNotification) => states.get(findGameId(notification) ?? -1)
  const current = on.filter(each => !isStale(toTimed(each), findGame(each), at))
  if (current.length === 0) return 'stale'
  const isQuiet = current.every(each => findDelay(toTimed(each), findGame(each), preferences, at))
  return { at, person, notifications: current.toReversed(), isQuiet }
}

/** Returns whether a mail of the first look would be the mail of the second. */
export function isSame(first: Look, second: Look | NoMail): boolean {
  if (typeof second === 'string') return false
  return isDeepStrictEqual({ ...first, at: undefined }, { ...second, at: undefined })
}
