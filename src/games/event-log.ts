import type { Sql } from '../db/sql.ts'
import type { GameEvent } from './parse-event.ts'

/** What is kept of an event, and whether it was recorded just now. */
export type RecordedEvent = { digest: string; notifications: number; fresh: boolean }

/**
 * Records the events that are new, in one statement: of several that carry one name at once it lets one through, and the
 * others wait for it to commit. They are written in the order of their keys, so that no two batches wait for each other.
 * @returns what is kept under each fact's key; for one of these facts or for an earlier event
 */
export async function record(sql: Sql, events: readonly GameEvent[], now: Date): Promise<Map<string, RecordedEvent>> {
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
  for (const { key, ...kept } of rows) recorded.set(key, { ...kept, fresh: false })
  return recorded
}

/** Keeps how many notifications each event brought about, for the answer to a repeat. */
export async function storeCounts(sql: Sql, counts: ReadonlyMap<string, number>): Promise<void> {
  if (counts.size === 0) return
  await sql`
    update event set notifications = counted.notifications
    from unnest(${[...counts.keys()]}::text[], ${[...counts.values()]}::integer[]) as counted (key, notifications)
    where event.key = counted.key`
}

/** Forgets facts reported before an instant; a repeat of one would count as new. @returns how many */
export async function prune(sql: Sql, before: Date, limit: number): Promise<number> {
  const gone = await sql`
    delete from event where key in (select key from event where received_at < ${before} order by received_at limit ${limit})
    returning key`
  return gone.length
}
