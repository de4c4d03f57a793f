import type { Query, Sql } from '../db/sql.ts'
import { type Fragment, fragment } from '../db/statement.ts'

export const WINDOW_SECONDS = 60

const WINDOW_MS = WINDOW_SECONDS * 1000

/** The longest time until the end of a window that the clocks of two processes can cause. */
const MAX_MS_UNTIL_END = 2 * WINDOW_MS

/** How many refused keys a process remembers. They take about 2 MB. */
const MAX_REFUSED_KEYS = 10_000

/** A counter of requests: its key in the table `throttle`, and how many requests it allows in a window. */
export type Counter = { key: string; limit: number }

/** `remaining` is the number of requests that the counter still allows in its window, which ends in `msUntilEnd`. */
export type Outcome = { isRefused: boolean; remaining: number; msUntilEnd: number }

type Row = { key: string; points: number; expire: number }

/**
 * Creates the functions that count requests in the table `throttle`. A window starts with the first request. All times
 * are those of `now`, which follows the clock of the database, so all processes agree about the windows.
 */
export function createCounters(sql: Query, now: () => Date) {
  /** The ends of the windows of refused keys. Until then, no request with such a key needs a statement. */
  const refusedUntilMs = new Map<string, number>()

  function findRefused(counters: readonly Counter[], nowMs: number): Outcome | undefined {
    for (const { key } of counters) {
      const end = refusedUntilMs.get(key)
      if (end === undefined) continue
      if (!isOver(end, nowMs)) return { isRefused: true, remaining: 0, msUntilEnd: end - nowMs }
      refusedUntilMs.delete(key)
    }
    return undefined
  }

  function remember({ key, expire }: Row): void {
    // All windows are equally long, so the oldest entry is one of the first to end.
    if (refusedUntilMs.size >= MAX_REFUSED_KEYS) refusedUntilMs.delete(refusedUntilMs.keys().next().value!)
    refusedUntilMs.set(key, expire)
  }

  return {
    /**
     * Counts a request. If the first counter refuses the request, the second counter does not count it, and the other
     * way round.
     * @returns the outcome of the counter that refuses the request, or of the counter with fewer remaining requests
     * @throws AppError 503 if the service cannot reach the database
     */
    async count(first: Counter, second?: Counter): Promise<Outcome> {
      const nowMs = now().getTime()
      const counters = second ? [first, second] : [first]
      const known = findRefused(counters, nowMs)
      if (known) return known
      const rows = await increment(sql, first, second, nowMs)
      const outcomes = counters.map(counter => readOutcome(rows, counter, counter.limit + 1, nowMs))
      const refusing = outcomes.findIndex(({ isRefused }) => isRefused)
      if (refusing < 0) return findStrictest(outcomes)
      remember(rows.find(({ key }) => key === counters[refusing]!.key)!)
      if (refusing > 0) await sql`update throttle set points = points - 1 where key = ${first.key} and points > 0`
      return outcomes[refusing]!
    },

    /** Returns what `count` would return if it did not count the request. */
    async peek(...counters: Counter[]): Promise<Outcome> {
      const nowMs = now().getTime()
      const rows = await sql<Row>`
        select key, points, expire from throttle where key = any(${counters.map(({ key }) => key)}::text[])`
      return findStrictest(counters.map(counter => readOutcome(rows, counter, counter.limit, nowMs)))
    },
  }
}

/** Counts a request in one statement. It locks the first row before the second, so two requests never deadlock. */
async function increment(sql: Query, first: Counter, second: Counter | undefined, nowMs: number): Promise<Row[]> {
  const end = nowMs + WINDOW_MS
  return sql<Row>`
    with first as (
      insert into throttle as stored (key, points, expire) values (${first.key}, 1, ${end})
      ${addToWindow(nowMs)}
    ), second as (
      insert into throttle as stored (key, points, expire)
      select ${second?.key ?? ''}, 1, ${end}::bigint from first
      where points <= ${first.limit} and ${second !== undefined}
      ${addToWindow(nowMs)}
    )
    select key, points, expire from first union all select key, points, expire from second`
}

function addToWindow(nowMs: number): Fragment {
  const isWindowOver = fragment`(stored.expire <= ${nowMs} or stored.expire > ${nowMs + MAX_MS_UNTIL_END})`
  return fragment`
    on conflict on constraint throttle_pkey do update set
      points = case when ${isWindowOver} then 1 else stored.points + 1 end,
      expire = case when ${isWindowOver} then excluded.expire else stored.expire end
    returning key, points, expire`
}

/** A window that begins in the future is over too: a clock that was ahead began it. */
function isOver(endMs: number, nowMs: number): boolean {
  return endMs <= nowMs || endMs > nowMs + MAX_MS_UNTIL_END
}

/** Returns the outcome of a counter. @param refusedFrom the counter refuses the request from this number of requests */
function readOutcome(rows: readonly Row[], { key, limit }: Counter, refusedFrom: number, nowMs: number): Outcome {
  const row = rows.find(other => other.key === key)
  if (!row || isOver(row.expire, nowMs)) return { isRefused: false, remaining: limit, msUntilEnd: WINDOW_MS }
  return {
    isRefused: row.points >= refusedFrom,
    remaining: Math.max(0, limit - row.points),
    msUntilEnd: row.expire - nowMs,
  }
}

function findStrictest(outcomes: readonly Outcome[]): Outcome {
  return outcomes.reduce((one, other) => (other.remaining < one.remaining ? other : one))
}

/**
 * Deletes counters whose window is over.
 * @param limit the maximum number of counters to delete
 * @returns the number of deleted counters
 */
export async function pruneThrottle(sql: Sql, now: Date, limit: number): Promise<number> {
  const nowMs = now.getTime()
  const deleted = await sql`
    delete from throttle where key in (
      select key from throttle where expire < ${nowMs} or expire > ${nowMs + MAX_MS_UNTIL_END} limit ${limit})
    returning key`
  return deleted.length
}
