import * as users from '../accounts/users.ts'
import type { Database, Sql } from '../db/sql.ts'
import { AppError, invalid } from '../errors.ts'
import type { Caller } from '../http/route.ts'
import type { Keys } from '../keys.ts'
import type { Language } from '../language.ts'
import * as codes from './codes.ts'
import type { Tokens } from './jwt.ts'
import * as sessions from './sessions.ts'

type Secrets = { keys: Keys; tokens: Tokens }

/**
 * Sends a code to an address, for a sign-up (with a profile) or a sign-in.
 * @param token of the client, if it sent one: a known client has a lane of its own
 * @returns whether it was a decoy, for the count alone
 * @throws AppError 422 on `email` for a sign-up with a registered address; 429 `wait` before the next send is due
 */
export async function requestCode(
  sql: Database,
  { keys, tokens }: Secrets,
  email: string,
  profile: users.Profile | undefined,
  token: string | undefined,
  language: Language,
  now: Date,
): Promise<'sent' | 'decoy'> {
  const sessionId = await findLane(sql, tokens, token, email, now)
  const requested = await codes.request(sql, keys, { email, sessionId }, profile, language, now)
  if (requested.outcome === 'registered') {
    throw invalid({
      email: [{ fr: 'Cette adresse e-mail a déjà un compte.', en: 'This e-mail address already has an account.' }],
    })
  }
  if (requested.outcome === 'wait') {
    throw new AppError(
      'wait',
      {
        fr: 'Un code vient d’être envoyé. Patientez avant d’en demander un autre.',
        en: 'A code was sent. Wait before asking for another.',
      },
      { headers: { 'retry-after': String(requested.seconds) } },
    )
  }
  return requested.decoy ? 'decoy' : 'sent'
}

/** What a right code gives. */
export type SignedIn = { userId: number; sessionId: string; token: string; isNewUser: boolean }

/**
 * Trades a code for a token, creating the account if it was a sign-up's. Undefined for a wrong, expired, used, exhausted
 * or superseded code, and for an unknown address: nothing tells them apart.
 */
export async function verifyCode(
  sql: Database,
  { keys, tokens }: Secrets,
  email: string,
  code: string,
  token: string | undefined,
  language: Language,
  now: Date,
): Promise<SignedIn | undefined> {
  const sessionId = await findLane(sql, tokens, token, email, now)
  const attempt = await guess(sql, keys, { email, sessionId }, code, now)
  if (!attempt) return undefined
  const opened = await openSession(sql, attempt, language, now)
  if (!opened) return undefined
  return { ...opened, token: sessions.firstToken(tokens, opened.userId, opened.sessionId, now) }
}

/**
 * Uses a right code up, creates the account if it was a sign-up's, else notes the language the person uses now, and opens a
 * session: all in one statement, so that all of it happens or nothing. Of several requests with one code one gets its row, and a
 * code that was superseded meanwhile has another id: the others get undefined.
 *
 * A sign-up may find its account made by an earlier one; it is in the statement's snapshot then, since an address has one live
 * code, and the next waits for that to be used up.
 */
export async function openSession(
  sql: Sql,
  attempt: codes.Attempt,
  language: Language,
  now: Date,
): Promise<Omit<SignedIn, 'token'> | undefined> {
  const [session] = await sql<{ id: string; user_id: number; is_new_user: boolean }>`
    with spent as (
      delete from sign_in_code where id = ${attempt.id} and purpose <> 'decoy'
      returning email, purpose, first_name, last_name, terms_version, terms_accepted_at
    ), created as (
      insert into app_user (email, first_name, last_name, locale, terms_version, terms_accepted_at, created_at, updated_at)
      select email, first_name, last_name, ${language}, terms_version, terms_accepted_at, ${now}, ${now}
      from spent where purpose = 'sign_up'
      on conflict on constraint app_user_email_key do nothing
      returning id
    ), found as (
      update app_user set locale = ${language}, updated_at = case when locale = ${language} then updated_at else ${now} end
      from spent where app_user.email = spent.email
      returning app_user.id
    ), account as (
      select id, true as is_new from created union all select id, false from found
    )
    insert into session (user_id, created_at, expires_at, issued_at)
    select id, ${now}, ${sessions.sessionEnd(now)}, ${now} from account
    returning id, user_id, (select is_new from account) as is_new_user`
  return session && { userId: session.user_id, sessionId: session.id, isNewUser: session.is_new_user }
}

/** Whether a fresh code proves that the caller owns the account's address. The code is used up. */
export async function verifyOwner(
  sql: Database,
  keys: Keys,
  { userId, sessionId }: Caller,
  code: string,
  now: Date,
): Promise<boolean> {
  const owner = await users.find(sql, userId)
  const attempt = owner && (await guess(sql, keys, { email: owner.email, sessionId }, code, now))
  return attempt !== undefined && codes.spend(sql, attempt)
}

/** Tries a code: an attempt is reserved, then compared. @returns the attempt if the code is right */
async function guess(
  sql: Database,
  keys: Keys,
  lane: codes.Lane,
  code: string,
  now: Date,
): Promise<codes.Attempt | undefined> {
  const attempt = await codes.reserve(sql, lane, now)
  // Where there is nothing to compare with, something is compared all the same.
  const right = keys.matches(attempt?.mac ?? NOTHING, attempt?.id ?? '', code)
  return right ? attempt : undefined
}

const NOTHING = Buffer.alloc(32)

/** An unusable token is ignored on the code routes, never a 401. */
async function findLane(sql: Database, tokens: Tokens, token: string | undefined, email: string, now: Date) {
  const claims = token === undefined ? undefined : tokens.read(token, now)
  return claims && (await sessions.findLane(sql, claims, email, now))
}
