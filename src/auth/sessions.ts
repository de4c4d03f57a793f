import type { Listener } from '../db/listener.ts'
import type { Query, Sql } from '../db/sql.ts'
import type { Caller } from '../http/route.ts'
import type { Claims, Tokens } from './jwt.ts'

// "Access token lifetime: 60 minutes. Refresh lifetime: 10080 minutes (7 days)."
const TOKEN_SECONDS = 60 * 60
const SESSION_MS = 10_080 * 60_000

/**
 * How long a superseded token goes on serving other calls, and may be refreshed again (decisions.md, "the effect of a refresh on
 * the previous token").
 */
const GRACE_MS = 30_000

/** How long an ended session still earns its client a lane of its own (decisions.md, "lanes"). */
const LANE_MS = 90 * 86_400_000

/** When a session ends that is opened now. */
export function sessionEnd(now: Date): Date {
  return new Date(now.getTime() + SESSION_MS)
}

/** The first token of a session that has just been opened. */
export function firstToken(tokens: Tokens, userId: number, sessionId: string, now: Date): string {
  return tokens.sign(tokenClaims({ userId, sessionId, generation: 1, issuedAt: now, expiresAt: sessionEnd(now) }))
}

/** Two ways to the database: what only reads waits for no lock, and has connections of its own. */
export type Connections = { sql: Sql; readSql: Query }

/** A token that is good, and until when it is, if its session isn't ended: its grace may be over before its `exp`. */
export type Accepted = { caller: Caller; until: Date }

/**
 * Accepts the newest token of a running session, or one superseded less than 30 s ago, before its own `exp`.
 * The first time a token is shown, that is written down: from then on the one before it is dead for good.
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
        or superseded_at[${claims.generation} - generation + 1 + cardinality(superseded_at)] > ${graceStart(now)})`
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

/** Which of these sessions have not been ended. */
export async function findRunning(sql: Query, sessionIds: string[]): Promise<Set<string>> {
  const rows = await sql<{ id: string }>`
    select id from session where id = any(${sessionIds}::uuid[]) and ended_at is null`
  return new Set(rows.map(row => row.id))
}

export type Refreshed =
  | { outcome: 'renewed'; token: string; expiresInSeconds: number }
  /** A dead token was shown: the session has been revoked with this very statement. */
  | { outcome: 'reuse' }
  | { outcome: 'refused' }

/**
 * Renews a token, expired or not, while its session runs. The newest token moves the chain on; a superseded one gets the
 * chain's newest if it was superseded less than 30 s ago or if no later token was ever shown (the answer was lost). Any
 * other superseded token is taken for theft. One statement decides, under the row's lock.
 */
export async function refresh(sql: Sql, tokens: Tokens, claims: Claims, now: Date): Promise<Refreshed> {
  const [session] = await sql<{ verdict: string; generation: number; issued_at: Date; expires_at: Date }>`
    with held as (
      select id,
        case
          when ${claims.generation} > generation then 'refuse'
          when ${claims.generation} = generation then 'renew'
          when presented > ${claims.generation} and coalesce(
              superseded_at[${claims.generation} - generation + 1 + cardinality(superseded_at)] <= ${graceStart(now)}, true)
            then 'reuse'
          -- The newest token is of no use to anybody once it has expired: then this one moves the chain on.
          when issued_at <= ${new Date(now.getTime() - TOKEN_SECONDS * 1000)} then 'renew'
          else 'repeat'
        end as verdict
      from session
      where id = ${claims.sid} and user_id = ${claims.sub} and ended_at is null and expires_at > ${now}
      for update
    )
    update session set
      generation = generation + (verdict = 'renew')::int,
      issued_at = case when verdict = 'renew' then ${now} else issued_at end,
      presented = case when verdict = 'refuse' then presented else greatest(presented, ${claims.generation}) end,
      superseded_at = case when verdict = 'renew'
        then array(select at from unnest(superseded_at) as at where at > ${graceStart(now)} order by at)
          || greatest(${now}, superseded_at[cardinality(superseded_at)])
        else superseded_at end,
      ended_at = case when verdict = 'reuse' then ${now}::timestamptz end,
      end_reason = case when verdict = 'reuse' then 'reuse' end
    from held where session.id = held.id
    returning verdict, generation, issued_at, expires_at,
      case when verdict = 'reuse' then pg_notify('session_ended', concat_ws(' ', user_id, session.id)) end`
  if (!session || session.verdict === 'refuse') return { outcome: 'refused' }
  if (session.verdict === 'reuse') return { outcome: 'reuse' }
  const renewed = tokenClaims({
    userId: claims.sub,
    sessionId: claims.sid,
    generation: session.generation,
    issuedAt: session.issued_at,
    expiresAt: session.expires_at,
  })
  return {
    outcome: 'renewed',
    token: tokens.sign(renewed),
    expiresInSeconds: Math.max(0, renewed.exp - Math.floor(now.getTime() / 1000)),
  }
}

/** Whose sessions have ended: one of them, or all. */
export type EndedSession = { userId: number; sessionId?: string | undefined }

/** Hears of every session that is ended before its time, by whatever process, some milliseconds after the commit. */
export function onEnded(listener: Listener, handler: (ended: EndedSession) => void): void {
  // `<user> <session>`, or the user alone for all of theirs.
  listener.on('session_ended', payload => {
    const [userId, sessionId] = payload.split(' ')
    handler({ userId: Number(userId), sessionId })
  })
}

/** Ends one session by logout; its tokens are refused from the commit on. */
export async function end(sql: Sql, sessionId: string, now: Date): Promise<void> {
  await sql`
    update session set ended_at = ${now}, end_reason = 'logout'
    where id = ${sessionId} and ended_at is null
    returning pg_notify('session_ended', concat_ws(' ', user_id, id))`
}

/** Ends every session of a user at an operator's word; they earn no lane any more. @returns how many were running */
export async function endAll(sql: Sql, userId: number, now: Date): Promise<number> {
  const [row] = await sql<{ count: number }>`
    with ended as (
      update session set ended_at = coalesce(ended_at, ${now}), end_reason = 'operator'
      where user_id = ${userId} and end_reason is distinct from 'operator'
      returning id
    )
    select count(*), pg_notify('session_ended', ${userId}::text) from ended`
  return row!.count
}

/** Takes away all sessions of a user who is being deleted. */
export async function removeAll(sql: Sql, userId: number): Promise<void> {
  await sql`
    with gone as (delete from session where user_id = ${userId} returning id)
    select count(*), pg_notify('session_ended', ${userId}::text) from gone`
}

/**
 * The lane that a token earns on the two code routes: its session, when it is of the account with this address, at most
 * 90 days old, and ended by nothing but time or logout. Expired and superseded tokens count.
 */
export async function findLane(sql: Sql, claims: Claims, email: string, now: Date): Promise<string | undefined> {
  const [lane] = await sql<{ id: string }>`
    select session.id
    from session join app_user on app_user.id = session.user_id
    where session.id = ${claims.sid} and app_user.id = ${claims.sub} and app_user.email = ${email}
      and (ended_at is null or end_reason = 'logout')
      and session.created_at > ${new Date(now.getTime() - LANE_MS)}`
  return lane?.id
}

function graceStart(now: Date): Date {
  return new Date(now.getTime() - GRACE_MS)
}

type Issued = { userId: number; sessionId: string; generation: number; issuedAt: Date; expiresAt: Date }

/** A token is nothing but its row: the same row gives the same claims again. */
function tokenClaims({ userId, sessionId, generation, issuedAt, expiresAt }: Issued): Claims {
  const iat = Math.floor(issuedAt.getTime() / 1000)
  const exp = Math.min(iat + TOKEN_SECONDS, Math.floor(expiresAt.getTime() / 1000))
  return { sub: userId, sid: sessionId, generation, iat, nbf: iat, exp }
}

/** Deletes sessions that earn no lane any more. @returns how many */
export async function prune(sql: Sql, now: Date, limit: number): Promise<number> {
  const gone = await sql`
    delete from session where id in (
      select id from session where created_at <= ${new Date(now.getTime() - LANE_MS)} limit ${limit})
    returning id`
  return gone.length
}

/** What is held on a user here (`users export`). */
export async function exportUserData(sql: Sql, userId: number) {
  return sql`
    select id, created_at, expires_at, ended_at, end_reason, issued_at
    from session where user_id = ${userId} order by created_at`
}
