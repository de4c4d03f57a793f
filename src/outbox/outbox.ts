import type { Query } from '../db/sql.ts'
import { fragment } from '../db/statement.ts'

/** A claimed row. `lease` is the token with which this worker has claimed the row. */
export type Delivery = {
  id: number
  class: number
  network: Buffer
  created_at: Date
  attempts: number
  lease: string
  code_id: string | null
  user_id: number | null
  game_id: number | null
  notification_id: number | null
  subscription_id: number | null
  /** The time after which the delivery is dropped. */
  deadline: Date | null
  payload: unknown
}

/**
 * A row that a worker has finished. With `due`, the row stays in the class `class` and waits until then. Without `due`,
 * it is deleted. `attempts` is the number of attempts that have begun.
 */
export type Finished = { id: number; class: number; lease: string; due: Date | undefined; attempts: number }

type Claim = {
  channel: string
  /** The maximum number of rows to claim. */
  limit: number
  /** For each class, the network that was served last. */
  lastNetworks: ReadonlyMap<number, Buffer>
  /** The worker may take over a row whose lease ended before this time. Without it, the worker takes over no row. */
  lapsedBefore: Date | undefined
}

/**
 * Claims rows for 10 s. Classes go in order. Within a class, networks take turns. The claim starts after the network
 * that was served last. It takes one row of each network, then a second row of each. So a network with a thousand
 * waiting rows delays the first row of another network by one row.
 *
 * The recursive subquery `turn` jumps from network to network in the index, so its cost does not depend on the number
 * of waiting rows. Its column `lap` is 1 after the search has continued with the first network.
 *
 * A claim may reach the server late, or wait for a lock. Therefore the claim compares the ends of leases with
 * `lapsedBefore` and not with the time at which it runs (see `TakeOver`).
 * @returns the claimed rows, in the order in which they must be delivered
 */
export async function claim(sql: Query, { channel, limit, lastNetworks, lapsedBefore }: Claim): Promise<Delivery[]> {
  const hasNoLease = fragment`(lease is null or leased_until < ${lapsedBefore ?? null}::timestamptz)`
  const isFree = fragment`ready and channel = ${channel} and class = turn.class and ${hasNoLease}`
  return sql<Delivery>`
    with recursive turn (class, last, lap, network, position) as (
      select class, last, 0, last, 0
      from unnest(${[...lastNetworks.keys()]}::smallint[], ${[...lastNetworks.values()]}::bytea[]) as served (class, last)
      union all
      select turn.class, turn.last, next.lap, next.network, turn.position + 1
      from turn cross join lateral (
        (select 0 as lap, network from outbox
          where ${isFree} and turn.lap = 0 and network > turn.network
          order by network limit 1)
        union all
        (select 1, network from outbox
          where ${isFree} and network <= turn.last and network > case turn.lap when 0 then '' else turn.network end
          order by network limit 1)
        order by lap limit 1
      ) as next
      where turn.position < ${limit}
    ), candidate as (
      select row.id, turn.class, row.round, turn.position
      from turn cross join lateral (
        select id, row_number() over (order by due, id) as round
        from (
          select id, due from outbox
          where ${isFree} and network = turn.network
          order by due limit ${limit}
        ) as first
      ) as row
      where turn.position > 0
      order by class, round, position limit ${limit}
    ), free as (
      select id from outbox
      where id in (select id from candidate) and ${hasNoLease}
      for update skip locked
    ), claimed as (
      update outbox set lease = gen_random_uuid(), leased_until = clock_timestamp() + interval '10 seconds',
        attempts = attempts + 1
      from free where outbox.id = free.id
      returning outbox.id, class, network, created_at, attempts, lease, code_id, user_id, game_id, notification_id,
        subscription_id, deadline, payload
    )
    select claimed.* from claimed join candidate using (id) order by candidate.class, round, position`
}

/**
 * Renews leases for 10 s. Locks the rows in the order of their ids. All transactions that wait for several rows of the
 * outbox use this order, so they cannot deadlock. A renewal under the row's own token succeeds even after the lease has
 * lapsed.
 * @returns the tokens of the renewed leases. Another worker has taken over the other rows
 */
export async function renew(sql: Query, leases: readonly { id: number; lease: string }[]): Promise<Set<string>> {
  const renewed = await sql<{ lease: string }>`
    with locked as (
      select outbox.id
      from unnest(${leases.map(({ id }) => id)}::bigint[], ${leases.map(({ lease }) => lease)}::uuid[]) as row (id, lease)
        join outbox on outbox.id = row.id and outbox.lease = row.lease
      order by outbox.id for update of outbox
    )
    update outbox set leased_until = clock_timestamp() + interval '10 seconds'
    from locked where outbox.id = locked.id
    returning outbox.lease`
  return new Set(renewed.map(({ lease }) => lease))
}

/**
 * Deletes finished rows, and defers rows that must be tried again. Ignores rows that another worker has taken over.
 * Locks the rows in the order of their ids.
 * @returns the tokens of the rows that the worker held
 */
export async function finish(sql: Query, rows: readonly Finished[], now: Date): Promise<Set<string>> {
  const finished = await sql<{ lease: string }>`
    with row as (
      select * from unnest(${rows.map(({ id }) => id)}::bigint[], ${rows.map(({ lease }) => lease)}::uuid[],
        ${rows.map(({ due }) => due ?? null)}::timestamptz[], ${rows.map(({ attempts }) => attempts)}::integer[],
        ${rows.map(row => row.class)}::smallint[])
        as row (id, lease, due, attempts, class)
    ), locked as (
      select row.* from row join outbox on outbox.id = row.id and outbox.lease = row.lease
      order by outbox.id for update of outbox
    ), deleted as (
      delete from outbox using locked where outbox.id = locked.id and locked.due is null
      returning locked.lease
    ), deferred as (
      update outbox set lease = null, leased_until = null, due = locked.due, ready = locked.due <= ${now},
        attempts = locked.attempts, class = locked.class
      from locked where outbox.id = locked.id and locked.due is not null
      returning locked.lease
    )
    select lease from deleted union all select lease from deferred`
  return new Set(finished.map(({ lease }) => lease))
}

/**
 * Marks at most `limit` rows as ready whose due time has come. The statement changes the outbox as a renewal does. So a
 * lock of the table, or any other fault that prevents a renewal, delays this statement too.
 * @returns the number of marked rows, and the time at which the statement ended, by the clock of the database
 */
export async function markReady(sql: Query, now: Date, limit: number): Promise<{ marked: number; endedAt: Date }> {
  const [row] = await sql<{ marked: number; endedAt: Date }>`
    with marked as (
      update outbox set ready = true
      where id in (select id from outbox where not ready and due <= ${now} order by due limit ${limit} for update skip locked)
      returning id
    )
    select (select count(*) from marked) as marked, clock_timestamp() as "endedAt"`
  return row!
}
