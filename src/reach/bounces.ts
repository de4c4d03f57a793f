import type { FastifyBaseLogger } from 'fastify'
import type { Query } from '../db/sql.ts'

const HOUR_MS = 3_600_000
/** More bounces than this share of the mails of an hour, and at least this number, are a fault of the mail server. */
const MAX_BOUNCED_SHARE = 0.05
const MIN_BOUNCES = 20

/**
 * Records the last attempt at a mail about unread notifications: the mail server took the mail, or refused it for good.
 * A bounce stops such mails until the next sign-in.
 */
export async function recordAttempt(sql: Query, userId: number, isBounced: boolean, now: Date): Promise<void> {
  await sql`
    with person as (
      select id from app_user where id = ${userId} for key share
    ), stopped as (
      update mail_state set bounced_at = ${now} from person where user_id = person.id and ${isBounced}
    )
    insert into digest_attempt (user_id, attempted_at, bounced) select id, ${now}, ${isBounced} from person`
}

/**
 * Takes the bounces of the last hour back if they are too many. A mail server that refuses many existing addresses has
 * a fault, such as a wrong list of recipients, and must not stop the mails to all people. Call this after
 * `recordAttempt`, in a separate statement. Then, if two workers record a bounce at the same time, at least one of them
 * sees both bounces.
 * @returns the number of addresses whose bounce was taken back
 */
export async function withdrawBounces(sql: Query, now: Date): Promise<number> {
  const since = new Date(now.getTime() - HOUR_MS)
  const withdrawn = await sql`
    with attempt as (
      select count(*) as total, count(*) filter (where bounced) as bounces from digest_attempt
      where attempted_at > ${since}
    ), bounced as (
      select user_id from mail_state
      where bounced_at > ${since}
        and user_id in (select user_id from digest_attempt where bounced and attempted_at > ${since})
        and (select bounces >= ${MIN_BOUNCES}::integer and bounces > total * ${MAX_BOUNCED_SHARE}::float8 from attempt)
      order by user_id for update
    )
    update mail_state set bounced_at = null from bounced where mail_state.user_id = bounced.user_id
    returning mail_state.user_id`
  return withdrawn.length
}

type Deps = { sql: Query; now: () => Date; log: FastifyBaseLogger; countWithdrawnBounces: (count: number) => void }

/**
 * Records the last attempt at a mail. Withdraws bounces if they are too many. If the database fails, only logs the
 * fault, so the attempt keeps its outcome.
 */
export async function settleAttempt({ sql, now, log, ...deps }: Deps, userId: number, isBounced: boolean) {
  try {
    await recordAttempt(sql, userId, isBounced, now())
    const withdrawn = isBounced ? await withdrawBounces(sql, now()) : 0
    if (withdrawn === 0) return
    deps.countWithdrawnBounces(withdrawn)
    log.error({ withdrawn }, 'the mail server refuses too many known addresses, so their bounces do not count')
  } catch (error) {
    log.warn({ err: error }, 'could not record an attempt at a mail about unread notifications')
  }
}
