import type { Sql } from '../db/sql.ts'
import type { Keys } from '../keys.ts'
import type { GameEvent } from './parse-event.ts'

/**
 * A stored event. `digest` is a keyed hash of the event's content. Events that an earlier version stored have a plain
 * hash instead. `fresh` is true if the current transaction has stored the event.
 */
export type RecordedEvent = { digest: string; notifications: number; fresh: boolean }

/**
 * Records the events that are not stored yet, with one insert. If several transactions record events with the same key,
 * one transaction stores its event, and the other transactions wait until that transaction ends. Every insert writes
 * its rows in the order of their keys, so two transactions cannot wait for each other.
 * @returns the stored event for each event key: one of `events`, or an event that was stored before
 */
export async function record(
  sql: Sql,
  keys: Keys,
  events: readonly GameEvent[],
  now: Date,
): Promise<Map<string, RecordedEvent>> {
  // A Map keeps the last value for each key. The events are in reverse order, so the Map keeps the first event for each
  // key.
  const byKey = new Map(events.toReversed().map(event => [event.key, event]))
  const firstEvents = [...byKey.values()]
  const digests = new Map(firstEvents.map(event => [event.key, keys.digest(describeContent(event))]))
  const eventKeys = [...digests.keys()]
  const types = firstEvents.map(event => event.type)
  const inserted = await sql<{ key: string }>`
    insert into event (key, digest, type, received_at)
    select key, digest, type, ${now}
    from unnest(${eventKeys}::text[], ${[...digests.values()]}::text[], ${types}::text[]) as reported (key, digest, type)
    order by key collate "C"
    on conflict on constraint event_pkey do nothing
    returning key`
  const recorded = new Map<string, RecordedEvent>(
    inserted.map(({ key }) => [key, { digest: digests.get(key)!, notifications: 0, fresh: true }]),
  )
  const knownKeys = eventKeys.filter(key => !recorded.has(key))
  if (knownKeys.length === 0) return recorded
  const rows = await sql<{ key: string; digest: string; notifications: number }>`
    select key, digest, notifications from event where key = any(${knownKeys}::text[])`
  for (const { key, ...stored } of rows) recorded.set(key, { ...stored, fresh: false })
  return recorded
}

/**
 * Returns whether a stored event has the content of `event`. If the operator has removed the secret that made the keyed
 * hash, the contents cannot be compared. The event then counts as the same, because a producer seldom reuses an id.
 */
export function hasContent(keys: Keys, { digest }: RecordedEvent, event: GameEvent): boolean {
  const isPlain = !digest.includes('.')
  return isPlain ? digest === event.digest : (keys.matchesDigest(digest, describeContent(event)) ?? true)
}

/** Returns the text under the keyed hash. It contains the key of the event, so equal contents have different hashes. */
function describeContent({ key, digest }: GameEvent): string {
  return `${key}:${digest}`
}

/**
 * Stores the number of notifications that each event caused. If a producer reports the event again, the answer contains
 * this number.
 * @param counts the number of notifications by event key
 */
export async function storeCounts(sql: Sql, counts: ReadonlyMap<string, number>): Promise<void> {
  if (counts.size === 0) return
  await sql`
    update event set notifications = counted.notifications
    from unnest(${[...counts.keys()]}::text[], ${[...counts.values()]}::integer[]) as counted (key, notifications)
    where event.key = counted.key`
}

/**
 * Deletes events that were received before an instant. If a producer reports a deleted event again, the service handles
 * it as a new event.
 * @returns the number of deleted events, at most `limit`
 */
export async function prune(sql: Sql, before: Date, limit: number): Promise<number> {
  const deleted = await sql`
    delete from event
    where key in (select key from event where received_at < ${before} order by received_at limit ${limit})
    returning key`
  return deleted.length
}
