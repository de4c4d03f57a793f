import { SESSION_ENDED_CHANNEL } from '../db/channels.ts'
import { onChannel } from '../db/own-schema.ts'
import type { Query, Sql } from '../db/sql.ts'
import type { Caller } from '../http/route.ts'
import { KNOWN_CLIENT_MS } from './code-limits.ts'
import type { Claims } from './jwt.ts'
import { findGraceStart, GRACE_MS } from './session-tokens.ts'

/**
 * `readSql` and `sql` use different connections. The connections of `readSql` run only queries that change no row. So a
 * query on these connections never waits for the lock on a row.
 */
export type Connections = { sql: Sql; readSql: Query }

/**
 * The caller of an accepted token. The service accepts the token until `until`: the earliest of its `exp`, the end of
 * its session and the end of its grace period. If a logout or another operation ends the session before `until`, the
 * service refuses the token from then on.
 */
export type Accepted = { caller: Caller; until: Date }

/**
 * Checks a token against its session. Accepts the newest token of a running session, and a token that was superseded
 * less than 30 s ago. In both cases, the token's own `exp` must not have passed.
 *
 * At the first request with a token, `authenticate` stores the token's generation in the column `presented`. If
 * `refresh` gets an older token more than 30 s after this token was superseded, it ends the session, because the older
 * token may be stolen.
 * @returns undefined if the token is refused
 */
export async function authenticate(
  { sql, readSql }: Connections,
  claims: Claims,
  now: Date,
): Promise<Accepted | undefined> {
  if (claims.exp * 1000 <= now.getTime()) return undefined
  const [session] = await readSql<{ presented: number; expires_at: Date; superseded_at: Date | null }>`
    select presented, expires_at,
      case when generation > ${claims.generation}
        then superseded_at[${claims.generation} - generation + 1 + cardinality(superseded_at)] end as superseded_at
    from session
    where id = ${claims.sid} and user_id = ${claims.sub} and ended_at is null and expires_at > ${now}
      and (generation = ${claims.generation}
        or superseded_at[${claims.generation} - generation + 1 + cardinality(superseded_at)] > ${findGraceStart(now)})`
  if (!session) return undefined
  if (session.presented < claims.generation) {
    await sql`
      update session set presented = ${claims.generation}
      where id = ${claims.sid} and presented < ${claims.generation}`
  }
  const graceEnd = session.superseded_at ? session.superseded_at.getTime() + GRACE_MS : Number.POSITIVE_INFINITY
  return {
    caller: { userId: claims.sub, sessionId: claims.sid, expiresAt: new Date(claims.exp * 1000) },
    until: new Date(Math.min(claims.exp * 1000, session.expires_at.getTime(), graceEnd)),
  }
}

/**
 * Returns those of `sessionIds` whose sessions have not been ended. `findRunning` ignores `expires_at`, so the result
 * may contain expired sessions.
 */
export async function findRunning(sql: Query, sessionIds: string[]): Promise<Set<string>> {
  const rows = await sql<{ id: string }>`
    select id from session where id = any(${sessionIds}::uuid[]) and ended_at is null`
  return new Set(rows.map(row => row.id))
}

/**
 * Ends one session for a logout. After the commit, `authenticate` refuses the tokens of the session.
 * @param isForgotten whether the client of the session stops being a known client
 */
export async function end(sql: Sql, sessionId: string, now: Date, isForgotten = false): Promise<void> {
  await sql`
    update session set ended_at = ${now}, end_reason = 'logout', is_forgotten = ${isForgotten}
    where id = ${sessionId} and ended_at is null
    returning pg_notify(${onChannel(SESSION_ENDED_CHANNEL)}, concat_ws(' ', user_id, id))`
}

/**
 * Ends every session of a user on behalf of an operator. After `endAll`, none of the user's existing sessions is a
 * known client.
 * @returns the number of changed sessions. Sessions that an operator had ended before do not count
 */
export async function endAll(sql: Sql, userId: number, now: Date): Promise<number> {
  const [row] = await sql<{ count: number }>`
    with ended as (
      update session set ended_at = coalesce(ended_at, ${now}), end_reason = 'operator'
      where user_id = ${userId} and end_reason is distinct from 'operator'
      returning id
    )
    select count(*), pg_notify(${onChannel(SESSION_ENDED_CHANNEL)}, ${userId}::text) from ended`
  return row!.count
}

/** Deletes all sessions of a user whose account is being deleted. */
export async function removeAll(sql: Sql, userId: number): Promise<void> {
  await sql`
    with deleted as (delete from session where user_id = ${userId} returning id)
    select count(*), pg_notify(${onChannel(SESSION_ENDED_CHANNEL)}, ${userId}::text) from deleted`
}

/**
 * Deletes sessions that began and ended more than 90 days ago. They are too old to be known clients, and push
 * subscriptions that they registered are not confirmed any more.
 * @param limit the maximum number of sessions to delete
 * @returns the number of deleted sessions
 */
export async function prune(sql: Sql, now: Date, limit: number): Promise<number> {
  const cutoff = new Date(now.getTime() - KNOWN_CLIENT_MS)
  const deleted = await sql`
    delete from session where id in (
      select id from session where created_at <= ${cutoff} and least(ended_at, expires_at) <= ${cutoff} limit ${limit})
    returning id`
  return deleted.length
}

/** Returns all sessions of a user for the command `users export`. */
export async function exportUserData(sql: Sql, userId: number) {
  return sql`
    select id, created_at, expires_at, ended_at, end_reason, is_forgotten, issued_at, code_mails, code_sent_at
    from session where user_id = ${userId} order by created_at`
}
