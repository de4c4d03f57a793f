import type { Hints } from '../db/hints.ts'
import type { Sql } from '../db/sql.ts'
import type { Keys } from '../keys.ts'
import type { Announced } from '../notifications/announce.ts'
import { announceOnce, type GameAnnouncement } from './announce.ts'
import * as eventLog from './event-log.ts'
import * as games from './games.ts'
import type { GameEvent } from './parse-event.ts'
import { planReminders, type ReminderSettings } from './plan-reminders.ts'
import { applyEvent, type Game } from './projection.ts'
import { announcementsFor } from './recipients.ts'
import { wakeDeliveries } from './wake-deliveries.ts'

/**
 * The outcome of a reported event. The status `mismatch` means that an earlier event has the same key but different
 * content. For a duplicate, `notifications` is the number of notifications that the first report caused.
 */
export type EventOutcome = { status: 'accepted' | 'duplicate'; notifications: number } | { status: 'mismatch' }

/**
 * Ingests events in one transaction: records the events, locks and updates the games, and makes the announcements. Each
 * statement handles all events, so it fails either for all events or for none. Therefore no event needs its own
 * savepoint. Statements that do not depend on each other are sent together. An event with the status `mismatch` changes
 * no game.
 *
 * Every call takes its locks in the same order: events by key, games by id, users by id, and then waiting deliveries by
 * id. So two calls cannot deadlock.
 *
 * @param sql begins a transaction, and not a savepoint, because `games.lock` recognizes stored events by the id of the
 *   transaction
 * @returns `outcomes`, one for each event, in the order of `events`. `skipped` is the number of recipients without an
 *   account, not counting guests
 */
export async function ingestEvents(
  { sql, hints }: { sql: Pick<Sql, 'begin'>; hints: Hints },
  keys: Keys,
  events: readonly GameEvent[],
  settings: ReminderSettings,
) {
  return hints.sendAfter(changed =>
    sql.begin(async tx => {
      const candidates = firstOfEachKey(events)
      const [recorded, known] = await Promise.all([
        eventLog.record(tx, keys, events, settings.now),
        games.lock(tx, candidates, settings.now),
      ])
      const fresh = new Set(candidates.filter(event => recorded.get(event.key)!.fresh))
      const announced = await applyEvents(tx, [...fresh], known, settings)
      for (const hint of announced.hints) changed.add(hint)
      const outcomes = events.map((event): EventOutcome => {
        const entry = recorded.get(event.key)!
        if (!fresh.has(event) && !eventLog.hasContent(keys, entry, event)) return { status: 'mismatch' }
        const notifications = announced.counts.get(event.key) ?? entry.notifications
        return { status: fresh.has(event) ? 'accepted' : 'duplicate', notifications }
      })
      return { outcomes, skipped: announced.skipped }
    }),
  )
}

function firstOfEachKey(events: readonly GameEvent[]): GameEvent[] {
  return [...Map.groupBy(events, event => event.key).values()].map(([first]) => first!)
}

/**
 * Applies new events to their games in the given order, and announces the events.
 * @param known the locked games, by id
 */
async function applyEvents(
  tx: Sql,
  events: readonly GameEvent[],
  known: ReadonlyMap<number, Game>,
  settings: ReminderSettings,
): Promise<Announced> {
  if (events.length === 0) return { counts: new Map(), skipped: 0, hints: [] }
  const current = new Map(known)
  const announcements: GameAnnouncement[] = []
  for (const event of events) {
    const before = current.get(event.gameId)!
    const after = applyEvent(before, event)
    current.set(event.gameId, after)
    announcements.push(...announcementsFor(before, after, event))
  }
  const changed = [...current.values()].filter(game => game !== known.get(game.id))
  // PostgreSQL runs the statements in the order of these calls. `planReminders` must come before `announceOnce`: if an
  // event is a producer's reminder, `announceOnce` deletes rows that `planReminders` has inserted.
  const [, , announced] = await Promise.all([
    games.save(tx, changed, settings.now),
    planReminders(tx, known, changed, settings),
    announceOnce(tx, announcements, settings, counts => eventLog.storeCounts(tx, counts)),
  ])
  const woken = await wakeDeliveries(tx, known, changed, settings.now)
  return { ...announced, hints: [...announced.hints, ...woken] }
}
