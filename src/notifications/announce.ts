import { formatNameForText } from '../accounts/names.ts'
import * as users from '../accounts/users.ts'
import { type Hint, inboxHint, OUTBOX_HINT } from '../db/hints.ts'
import type { Sql } from '../db/sql.ts'
import type { Language } from '../language.ts'
import type { NotificationType } from '../notification-types.ts'
import { type RenderedText, render, type TextValues } from './catalogue.ts'
import type { LocalTime } from './dates.ts'
import { isUrgent, queueDeliveries } from './queue-deliveries.ts'
import { type NewNotification, store } from './store.ts'

/** An announcement. Each recipient gets one notification, in their own language. */
export type Announcement = {
  type: NotificationType
  /** Identifies the event. A user gets at most one notification for each pair of type and event. */
  eventKey: string
  recipientIds: readonly number[]
  actorId?: number | undefined
  /** The values that the texts may mention, except the actor's name. */
  values: Omit<TextValues, keyof LocalTime | 'actorName'>
  /** The `data` of the notification. */
  data: Record<string, unknown>
}

export type Announced = {
  /** The number of recipients with an account, by event key. */
  counts: Map<string, number>
  /** The number of recipients without an account, not counting guests. */
  skipped: number
  /** The hints about the inboxes of the recipients and the outbox. The caller sends them after its commit. */
  hints: readonly Hint[]
}

/**
 * Runs a statement that needs the member `counts` of `Announced`. The statement is sent together with the insert of the
 * notifications, so it needs no additional round trip.
 */
export type InsertCompanion = (counts: Announced['counts']) => Promise<unknown>

/**
 * Locks the accounts of recipients and actors, renders the texts and stores the notifications. Adds a row to the
 * outbox, from which a worker makes the pushes and mails. Skips guests and other recipients without an account. No
 * other function creates notifications.
 * @param besideInsert runs one more statement together with the insert of the notifications
 */
export async function announce(
  tx: Sql,
  announcements: readonly Announcement[],
  localTime: LocalTime,
  besideInsert: InsertCompanion = async () => {},
): Promise<Announced> {
  const named = announcements.flatMap(({ actorId, recipientIds }) => [...recipientIds, ...(actorId ? [actorId] : [])])
  const ids = new Set(named.filter(id => !isGuest(id)))
  if (ids.size === 0) return { counts: new Map(), skipped: 0, hints: [] }
  const people = await users.lockForShare(tx, [...ids])
  const notifications = announcements.flatMap(announcement => renderAll(announcement, people, localTime))
  const counts = countByEvent(announcements, people)
  const [stored] = await Promise.all([store(tx, notifications, localTime.now), besideInsert(counts)])
  queueDeliveries(tx, stored, findUrgentKeys(announcements, localTime.now), localTime.now)
  const recipients = announcements.flatMap(({ recipientIds }) => recipientIds).filter(id => !isGuest(id))
  const hints = stored.length > 0 ? [OUTBOX_HINT, ...stored.map(({ userId, id }) => inboxHint(userId, id))] : []
  return { counts, skipped: recipients.length - notifications.length, hints }
}

function isGuest(id: number): boolean {
  return id >= users.FIRST_GUEST_ID
}

type People = ReadonlyMap<number, users.Person>

/** Returns a notification for each recipient who has an account. */
function renderAll({ type, ...announcement }: Announcement, people: People, localTime: LocalTime): NewNotification[] {
  const { eventKey, actorId, data } = announcement
  const actor = actorId === undefined ? undefined : people.get(actorId)
  const actorName = actor && formatNameForText(actor.firstName)
  const values = { ...announcement.values, ...localTime, ...(actorName !== undefined && { actorName }) }
  const texts = new Map<Language, RenderedText>()
  return announcement.recipientIds
    .filter(id => people.has(id))
    .map(userId => {
      const { locale } = people.get(userId)!
      const text = texts.get(locale) ?? render(type, locale, values)
      texts.set(locale, text)
      const dedupKey = toDedupKey({ type, eventKey })
      return { userId, type, ...text, data, dedupKey, actorId: actorId ?? null, locale }
    })
}

function toDedupKey({ type, eventKey }: Pick<Announcement, 'type' | 'eventKey'>): string {
  return `${type}:${eventKey}`
}

function findUrgentKeys(announcements: readonly Announcement[], now: Date): Set<string> {
  return new Set(announcements.filter(({ type, values }) => isUrgent(type, values.startsAt, now)).map(toDedupKey))
}

function countByEvent(announcements: readonly Announcement[], people: People): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { eventKey, recipientIds } of announcements) {
    const known = recipientIds.filter(id => people.has(id))
    counts.set(eventKey, (counts.get(eventKey) ?? 0) + known.length)
  }
  return counts
}
