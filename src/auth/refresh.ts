import { SESSION_ENDED_CHANNEL } from '../db/channels.ts'
import { onChannel } from '../db/own-schema.ts'
import type { Sql } from '../db/sql.ts'
import type { Claims, Tokens } from './jwt.ts'
import { buildClaims, findGraceStart, GRACE_MS, TOKEN_SECONDS } from './session-tokens.ts'

/**
 * The minimum remaining lifetime of a token that `refresh` returns again (decisions.md, "a refresh of a token that a
 * refresh has just returned").
 */
const USEFUL_MS = 5 * 60_000

/** The number of superseded tokens of a session whose grace periods the row can store. */
const MAX_SUPERSEDED = 8

/** The keyed hashes of the network and of the User-Agent of a client. */
export type Origin = { network: Buffer; agent: Buffer }

export type Refreshed =
  /**
   * `isLate` is true if the request contains a superseded token whose grace period is over. In this case, the client
   * did not receive the answer to an earlier refresh.
   */
  | { outcome: 'renewed'; token: string; expiresInSeconds: number; isLate: boolean }
  /** The request contains a superseded token that counts as stolen. `refresh` has ended the session. */
  | { outcome: 'reuse' }
  | { outcome: 'refused' }

type Row = {
  verdict: 'refuse' | 'reuse' | 'renew' | 'repeat'
  is_late: boolean
  generation: number
  issued_at: Date
  expires_at: Date
}

/**
 * Renews a token while its session runs. The token itself may have expired. One statement locks the session's row and
 * decides:
 * - For the newest token, `refresh` issues a new token. If a refresh returned the newest token less than 30 s ago,
 *   `refresh` returns the same token again.
 * - For a superseded token in its grace period, `refresh` returns the session's newest token.
 * - For a superseded token after its grace period, `refresh` returns the session's newest token if no request ever
 *   contained a later token. In this case, the client never received a later token.
 * - Any other superseded token counts as stolen, and the statement ends the session. After the grace period, the
 *   statement also compares the client with the client that got the newest token. If both the network and the
 *   User-Agent differ, the superseded token counts as stolen.
 *
 * If `refresh` would return the newest token, but the newest token is valid for less than 5 minutes, `refresh` issues a
 * new token instead. In the last hour of a session, no new token can be valid for longer than the newest token, so
 * `refresh` returns the newest token.
 */
export async function refresh(
  sql: Sql,
  tokens: Tokens,
  { claims, origin }: { claims: Claims; origin: Origin },
  now: Date,
): Promise<Refreshed> {
  const usefulSince = now.getTime() - TOKEN_SECONDS * 1000 + USEFUL_MS
  const [session] = await sql<Row>`
    with found as (
      select *,
        generation > ${claims.generation} and coalesce(
          superseded_at[${claims.generation} - generation + 1 + cardinality(superseded_at)]
            <= ${findGraceStart(now)}, true) as is_late,
        generation > 1 and greatest(issued_at, given_at) > ${findGraceStart(now)} as was_just_given,
        -- If a superseded token returns the newest token, the newest token must stay useful for the 30 s in which it
        -- returns itself.
        issued_at > case when generation = ${claims.generation}
            then ${new Date(usefulSince)}::timestamptz else ${new Date(usefulSince + GRACE_MS)} end
          or issued_at >= expires_at - make_interval(secs => ${TOKEN_SECONDS}) as is_useful,
        -- Never true if a process of the previous version issued the newest token.
        refresh_generation = generation
          and refresh_network <> ${origin.network} and refresh_agent <> ${origin.agent} as is_from_elsewhere
      from session
      where id = ${claims.sid} and user_id = ${claims.sub} and ended_at is null and expires_at > ${now}
      for update
    ), current as (
      select id, is_late,
        case
          when generation < ${claims.generation} then 'refuse'
          when is_late and (presented > ${claims.generation} or is_from_elsewhere) then 'reuse'
          when is_useful and (was_just_given or generation > ${claims.generation}) then 'repeat'
          else 'renew'
        end as verdict
      from found
    )
    update session set
      generation = generation + (verdict = 'renew')::int,
      issued_at = case when verdict = 'renew' then ${now} else issued_at end,
      presented = case when verdict = 'refuse' then presented else greatest(presented, ${claims.generation}) end,
      given_at = case when verdict in ('renew', 'repeat') then ${now} else given_at end,
      superseded_at = case when verdict = 'renew'
        then array(
            select at from (
              select at from unnest(superseded_at) as at where at > ${findGraceStart(now)}
              order by at desc limit ${MAX_SUPERSEDED - 1}
            ) as latest order by at)
          || greatest(${now}, superseded_at[cardinality(superseded_at)])
        else superseded_at end,
      refresh_generation = case when verdict = 'renew' then generation + 1 else refresh_generation end,
      refresh_network = case when verdict = 'renew' then ${origin.network} else refresh_network end,
      refresh_agent = case when verdict = 'renew' then ${origin.agent} else refresh_agent end,
      ended_at = case when verdict = 'reuse' then ${now}::timestamptz end,
      end_reason = case when verdict = 'reuse' then 'reuse' end
    from current where session.id = current.id
    returning verdict, is_late, generation, issued_at, expires_at,
      case when verdict = 'reuse' then pg_notify(${onChannel(SESSION_ENDED_CHANNEL)}, concat_ws(' ', user_id, session.id)) end`
  if (!session || session.verdict === 'refuse') return { outcome: 'refused' }
  if (session.verdict === 'reuse') return { outcome: 'reuse' }
  return { outcome: 'renewed', ...signNewest(tokens, claims, session, now), isLate: session.is_late }
}

/** Signs the newest token of the session of `claims`. */
function signNewest(tokens: Tokens, { sub, sid }: Claims, session: Row, now: Date) {
  const newest = buildClaims({
    userId: sub,
    sessionId: sid,
    generation: session.generation,
    issuedAt: session.issued_at,
    expiresAt: session.expires_at,
  })
  return { token: tokens.sign(newest), expiresInSeconds: Math.max(0, newest.exp - Math.floor(now.getTime() / 1000)) }
}
