import * as users from '../accounts/users.ts'
import type { Sql } from '../db/sql.ts'
import type { LocalTime } from '../notifications/dates.ts'
import * as notifications from '../notifications/notifications.ts'
import * as eventLog from './event-log.ts'
import * as games from './games.ts'
import { renderNotifications } from './messages.ts'
import type { GameEvent } from './parse-event.ts'
import { planReminders, type ReminderSettings, replaceByProducerReminder } from './planning.ts'
import { applyEvent } from './projection.ts'
import { type Announcement, announcementsFor } from './recipients.ts'

/** What became of a reported fact; for a repeat `notifications` is the first's count. */
export type EventOutcome = { status: 'accepted' | 'duplicate'; notifications: number } | { status: 'mismatch' }

/**
 * Takes facts in, in one transaction: records the events, locks and updates their games, notifies. Each step is one
 * statement, however many facts there are, and steps that don't need each other's outcome are sent at once. A mismatch is known
 * before anything of the fact is written, and nothing else can refuse one here, so that there is nothing for a savepoint to
 * take back.
 *
 * Locks are taken in one order by everybody: events by key, games by id, users by id. So no two requests wait for each other.
 *
 * @returns an outcome for each fact, in their order, and how many recipients were skipped as unknown
 */
export async function ingestEvents(sql: Sql, events: readonly GameEvent[], settings: ReminderSettings) {
  return sql.begin(async tx => {
    const recorded = await eventLog.record(tx, events, settings.now)
    const fresh = new Set(firstOfEachKey(events).filter(event => recorded.get(event.key)!.fresh))
    const { counts, skipped } = await applyEvents(tx, [...fresh], settings)
    const outcomes = events.map((event): EventOutcome => {
      const kept = recorded.get(event.key)!
      if (kept.digest !== event.digest) return { status: 'mismatch' }
      const notifications = counts.get(event.key) ?? kept.notifications
      return { status: fresh.has(event) ? 'accepted' : 'duplicate', notifications }
    })
    return { outcomes, skipped }
  })
}

/** Of the facts that share a name the first, in the order of the request. */
function firstOfEachKey(events: readonly GameEvent[]): GameEvent[] {
  return [...Map.groupBy(events, event => event.key).values()].map(([first]) => first!)
}

/** Lets new facts take effect, one after the other. */
async function applyEvents(tx: Sql, events: readonly GameEvent[], settings: ReminderSettings) {
  if (events.length === 0) return { counts: new Map<string, number>(), skipped: 0 }
  const known = await games.lock(tx, events, settings.now)
  const current = new Map(known)
  const told: Announcement[] = []
  for (const event of events) {
    const before = current.get(event.gameId)!
    const after = applyEvent(before, event)
    current.set(event.gameId, after)
    told.push(...announcementsFor(before, after, event))
  }
  const changed = [...current.values()].filter(game => game !== known.get(game.id))
  // In this order, so that a producer's own reminder finds what is planned.
  const [, , outcome] = await Promise.all([
    games.save(tx, changed, settings.now),
    planReminders(tx, known, changed, settings),
    tell(tx, told, settings),
  ])
  return outcome
}

async function tell(tx: Sql, told: readonly Announcement[], clock: LocalTime) {
  return notify(tx, await dropAlreadyAnnounced(tx, told, clock.now), clock)
}

/** Leaves out what was told of a game before, and keeps what is told now. */
async function dropAlreadyAnnounced(tx: Sql, told: readonly Announcement[], now: Date): Promise<Announcement[]> {
  const once = told.filter(announcement => announcement.onceKey !== undefined)
  if (once.length === 0) return [...told]
  const claimed = await games.claimOnceKeys(tx, once, now)
  const fresh = told.filter(({ onceKey, game }) => onceKey === undefined || claimed.delete(`${game.id} ${onceKey}`))
  const reminded = fresh.filter(({ type }) => type === 'game_reminder').map(({ game }) => game)
  if (reminded.length > 0) await replaceByProducerReminder(tx, reminded, now)
  return fresh
}

async function notify(tx: Sql, told: readonly Announcement[], clock: LocalTime) {
  const counts = new Map<string, number>()
  const ids = new Set(told.flatMap(({ event, userIds }) => (event.actorId ? [...userIds, event.actorId] : userIds)))
  if (ids.size === 0) return { counts, skipped: 0 }
  const people = await users.lockForShare(tx, [...ids])
  for (const { event, userIds } of told) {
    const known = userIds.filter(id => people.has(id))
    counts.set(event.key, (counts.get(event.key) ?? 0) + known.length)
  }
  const rows = renderNotifications(told, people, clock)
  await Promise.all([notifications.store(tx, rows, clock.now), eventLog.storeCounts(tx, counts)])
  const asked = told.reduce((sum, { userIds }) => sum + userIds.length, 0)
  return { counts, skipped: asked - rows.length }
}
