import { findLatestStart } from '../auth/clock-tolerance.ts'
import type { UnreadNotification } from '../notifications/unread.ts'
import type { Preferences } from './preferences.ts'
import { findDelay, type GameState, isStale, toTimed } from './timing.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const ORDINARY_INTERVAL_MS = 24 * HOUR_MS
const URGENT_INTERVAL_MS = 10 * MINUTE_MS
/** An unread notification that is older than this causes no mail. */
const MAX_AGE_MS = 72 * HOUR_MS

/** A row of `waiting_mail`. `notification` is undefined if it was read or deleted. */
export type Waiting = {
  id: number
  isUrgent: boolean
  createdAt: Date
  notification: UnreadNotification | undefined
  game: GameState | undefined
}

/**
 * The last mails to a person. `isBouncing` means that the mail server refused the address, and the person has not
 * signed in since. `hasUrgentMail` means that an urgent mail is in the outbox, and may leave at any moment.
 */
export type MailState = {
  ordinaryAt: Date | undefined
  urgentAt: Date | undefined
  hasUrgentMail: boolean
  isBouncing: boolean
}

/** The time for which a notification stays unread before it causes a mail. */
export type MailDelays = { emailAfterMs: number; emailAfterUrgentMs: number }

type Held = { id: number; until: Date }

/** A decision about the rows of one person: the rows to drop, the rows that wait, and the mail, if one is due. */
export type MailPlan = {
  dropped: number[]
  held: Held[]
  mail: { isUrgent: boolean; ids: number[]; urgentIds: number[] } | undefined
}

/** Returns whether a person wants mails about a type. */
export function wantsMail({ types, emailPaused }: Preferences, type: UnreadNotification['type']): boolean {
  return !emailPaused && types[type].email
}

/**
 * Decides about the waiting notifications of one person whose time has come. An ordinary mail takes urgent
 * notifications too. If only urgent ones may leave, the mail is an urgent one, which has a separate limit.
 */
export function planMail(
  rows: readonly Waiting[],
  state: MailState,
  preferences: Preferences,
  { now, ...delays }: MailDelays & { now: Date },
): MailPlan {
  const isOver = ({ notification, game, createdAt }: Waiting) =>
    state.isBouncing ||
    notification === undefined ||
    now.getTime() - createdAt.getTime() > MAX_AGE_MS ||
    !wantsMail(preferences, notification.type) ||
    isStale(toTimed(notification), game, now)
  const dropped = rows.filter(isOver).map(({ id }) => id)
  const held: Held[] = []
  const free: Waiting[] = []
  for (const row of rows.filter(each => !isOver(each))) {
    const until = findWait(row, preferences, { now, ...delays })
    if (until) held.push({ id: row.id, until })
    else free.push(row)
  }
  const ordinaryFrom = findNextMail(state.ordinaryAt, ORDINARY_INTERVAL_MS, now)
  const urgentFrom = findNextMail(state.hasUrgentMail ? now : state.urgentAt, URGENT_INTERVAL_MS, now)
  const urgent = free.filter(({ isUrgent }) => isUrgent)
  if (free.length > urgent.length && (!ordinaryFrom || ordinaryFrom <= now)) {
    return { dropped, held, mail: toMail(free, false) }
  }
  for (const { id, isUrgent } of free) if (!isUrgent) held.push({ id, until: ordinaryFrom! })
  if (urgent.length === 0) return { dropped, held, mail: undefined }
  if (!urgentFrom || urgentFrom <= now) return { dropped, held, mail: toMail(urgent, true) }
  held.push(...urgent.map(({ id }) => ({ id, until: urgentFrom })))
  return { dropped, held, mail: undefined }
}

/** Returns the time until which a notification waits, because it is too new or because of quiet hours. */
function findWait(
  { isUrgent, createdAt, notification, game }: Waiting,
  preferences: Preferences,
  { now, emailAfterMs, emailAfterUrgentMs }: MailDelays & { now: Date },
): Date | undefined {
  const mailFrom = addMs(createdAt, isUrgent ? emailAfterUrgentMs : emailAfterMs)!
  return mailFrom > now ? mailFrom : findDelay(toTimed(notification!), game, preferences, now)
}

/** Returns when the next mail may leave. Ignores the time of a mail that comes from a clock that was ahead. */
function findNextMail(last: Date | undefined, intervalMs: number, now: Date): Date | undefined {
  return last && last <= findLatestStart(now) ? addMs(last, intervalMs) : undefined
}

function toMail(rows: readonly Waiting[], isUrgent: boolean) {
  const urgentIds = rows.filter(row => row.isUrgent).map(({ id }) => id)
  return { isUrgent, ids: rows.map(({ id }) => id), urgentIds }
}

function addMs(instant: Date | undefined, ms: number): Date | undefined {
  return instant && new Date(instant.getTime() + ms)
}
