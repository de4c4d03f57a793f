import type { Query } from '../db/sql.ts'
import { KNOWN_CLIENT_MS, MAX_ATTEMPTS, MAX_KNOWN_CLIENT_MAILS, MAX_KNOWN_CLIENTS } from './code-limits.ts'
import type { Claims } from './jwt.ts'

/** A session whose holder is a known client. `hasMails` is false if the next request counts as a stranger's. */
export type KnownClient = { sessionId: string; hasMails: boolean }

/**
 * Returns the session of a token if it belongs to the account with the address `email`, however the session ended.
 * `isKnown`: the holder of the token is a known client of the account (decisions.md, "known clients"):
 * - The session is one of the account's newest sessions, and is running or less than 90 days old.
 * - The session is running, has expired, or was ended by a logout that did not ask to forget the client.
 * - The session has not used up its mails. After its last mail, it stays known until its code ends.
 *
 * The token may be expired or superseded.
 */
export async function findTokenSession(
  sql: Query,
  { sub, sid }: Pick<Claims, 'sub' | 'sid'>,
  email: string,
  now: Date,
): Promise<(KnownClient & { isKnown: boolean }) | undefined> {
  const [session] = await sql<KnownClient & { isKnown: boolean }>`
    select session.id as "sessionId", code_mails < ${MAX_KNOWN_CLIENT_MAILS} as "hasMails",
      (ended_at is null or end_reason = 'logout') and not is_forgotten
      and (session.created_at > ${new Date(now.getTime() - KNOWN_CLIENT_MS)}
        or (ended_at is null and session.expires_at > ${now}))
      and (
        select count(*) from (
          select from session as other
          where other.user_id = ${sub} and (other.created_at, other.id) > (session.created_at, session.id)
          limit ${MAX_KNOWN_CLIENTS}
        ) as newer
      ) < ${MAX_KNOWN_CLIENTS}
      and (code_mails < ${MAX_KNOWN_CLIENT_MAILS} or exists (
        select from sign_in_code as code
        where code.email = ${email} and code.session_id = session.id
          and code.expires_at > ${now} and code.attempts < ${MAX_ATTEMPTS})) as "isKnown"
    from session join app_user on app_user.id = session.user_id
    where session.id = ${sid} and app_user.id = ${sub} and app_user.email = ${email}`
  return session
}
