import type { Sql } from '../db/sql.ts'
import type { GameEvent } from './parse-event.ts'

/** A stored event. `fresh` says whether this transaction has stored it. */
export type RecordedEvent = { digest: string; notifications: number; fresh: boolean }

/**
 * Records events that are not known yet, in one statement. If several transactions record the same key, one of them
 * stores it and the others wait for its commit. Rows are written in the order of their keys, so two batches cannot
 * deadlock.
 * @returns the stored event of each key, whether it is one of `events` or an earlier one
 */
export async function record(sql: Sql, events: readonly GameEvent[], now: Date): Promise<Map<string, RecordedEvent>> {
  // A map keeps the last value of a key. Reversed, it keeps the first event.
  const byKey = new Map(events.toReversed().map(event => [event.key, event]))
  const first = [...byKey.values()]
  const keys = first.map(event => event.key)
  const inserted = await sql<{ key: string }>`
    insert into event (key, digest, type, received_at)
    select key, digest, type, ${now}
    from unnest(${keys}::text[], ${first.map(event => event.digest)}::text[], ${first.map(event => event.type)}::text[])
      as reported (key, digest, type)
    order by key collate "C"
    on conflict on constraint event_pkey do nothing
    returning key`
  const recorded = new Map<string, RecordedEvent>(
    inserted.map(({ key }) => [key, { digest: byKey.get(key)!.digest, notifications: 0, fresh: true }]),
  )
  const earlier = keys.filter(key => !recorded.has(key))
  if (earlier.length === 0) return recorded
  const rows = await sql<{ key: string; digest: string; notifications: number }>`
    select key, digest, notifications from event where key = any(${earlier}::text[])`
  for (const { key, ...stored } of rows) recorded.set(key, { ...stored, fresh: false })
  return recorded
}

/** Stores how many notifications each event has caused, for the answer to a repeat. */
export async function storeCounts(sql: Sql, counts: ReadonlyMap<string, number>): Promise<void> {
  if (counts.size === 0) return
  await sql`
    update event set notifications = counted.notifications
    from unnest(${[...counts.keys()]}::text[], ${[...counts.values()]}::integer[]) as counted (key, notifications)
    where event.key = counted.key`
}

/**
 * Deletes events that were received before an instant. A later repeat of such an event counts as new.
 * @returns how many it deleted, at most `limit`
 */
export async function prune(sql: Sql, before: Date, limit: number): Promise<number> {
  const deleted = await sql`
    delete from event
    where key in (select key from event where received_at < ${before} order by received_at limit ${limit})
    returning key`
  return deleted.length
}
