import * as users from '../accounts/users.ts'
import type { Sql } from '../db/sql.ts'
import { AppError, invalid } from '../errors.ts'
import type { Caller } from '../http/route.ts'
import type { Keys } from '../keys.ts'
import type { Language } from '../language.ts'
import type { MailBacklog } from '../limits/mail-backlog.ts'
import * as codes from './codes.ts'
import { issueCode } from './issue-code.ts'
import type { Tokens } from './jwt.ts'
import { firstToken, sessionEnd } from './session-tokens.ts'
import * as sessions from './sessions.ts'

type Dependencies = { sql: Sql; keys: Keys; tokens: Tokens; mailBacklog: MailBacklog; now: () => Date }

/**
 * A request to one of the two code routes. If `token` belongs to a session of the account, it selects the lane of this
 * session, even if the token has expired.
 */
type CodeCall = { email: string; token: string | undefined }

/** `waitSeconds` is the time that the caller must wait before it requests the next code. */
export type SentCode = { outcome: 'sent' | 'decoy'; waitSeconds: number }

export type SignedIn = { userId: number; sessionId: string; token: string; isNewUser: boolean }

// The hash with which `guess` compares the typed code if there is no live code.
const NO_MAC = Buffer.alloc(32)

export type SignIn = ReturnType<typeof createSignIn>

/** Creates the functions that request and verify sign-in codes. */
export function createSignIn({ sql, keys, tokens, mailBacklog, now }: Dependencies) {
  /**
   * Returns the lane of the token's session. If there is no usable token, returns the shared lane. The code routes
   * ignore an unusable token instead of answering 401.
   */
  async function findLane(email: string, token: string | undefined): Promise<codes.Lane> {
    const claims = token === undefined ? undefined : tokens.read(token, now())
    return { email, sessionId: claims && (await sessions.findLane(sql, claims, email, now())) }
  }

  /**
   * Reserves an attempt and compares the typed code with the live code. If there is no live code, `guess` compares the
   * typed code with `NO_MAC`, so both cases take the same time.
   * @returns undefined if the typed code is not correct
   */
  async function guess(lane: codes.Lane, code: string): Promise<codes.Attempt | undefined> {
    const attempt = await codes.reserve(sql, lane, now())
    const isCorrect = keys.matches(attempt?.mac ?? NO_MAC, attempt?.id ?? '', code)
    return isCorrect ? attempt : undefined
  }

  /**
   * Sends a code to an address, in a mail in `language`. A request with a profile is a sign-up. The outcome `decoy` means that no mail is sent.
   * Only the metrics may use the outcome, because it reveals whether the address has an account.
   * @throws AppError 422 that names the field `email`, if the request is a sign-up and the address already has an
   *   account
   * @throws AppError 503 if the caller is not a known client and too many mails wait in the outbox
   * @throws AppError 429 `wait` if the wait after the previous code is not over
   */
  async function requestCode(
    call: CodeCall & { profile: users.Profile | undefined; language: Language },
  ): Promise<SentCode> {
    const { email, token, profile, language } = call
    const lane = await findLane(email, token)
    // This check comes before the check whether the address has an account, so it does not reveal this fact.
    if (lane.sessionId === undefined) mailBacklog.check(profile ? 'signUp' : 'account')
    const issued = await issueCode(sql, keys, { lane, profile, language }, now())
    if (issued.outcome === 'registered') throw alreadyRegistered()
    if (issued.outcome === 'wait') throw mustWait(issued.waitSeconds)
    return { outcome: issued.isDecoy ? 'decoy' : 'sent', waitSeconds: issued.waitSeconds }
  }

  /**
   * Exchanges a code for a token. If the code belongs to a sign-up, `verifyCode` creates the account. Stores `language`
   * in the account. If `language` is undefined, an existing account keeps its language, and a new account gets French.
   * @returns undefined if the code is wrong, expired, used or replaced, if it has no attempts left, or if the address
   *   is unknown
   */
  async function verifyCode(
    call: CodeCall & { code: string; language: Language | undefined },
  ): Promise<SignedIn | undefined> {
    const { email, token, code, language } = call
    const attempt = await guess(await findLane(email, token), code)
    const instant = now()
    const opened = attempt && (await openSession(sql, attempt, language, instant))
    return opened && { ...opened, token: firstToken(tokens, opened.userId, opened.sessionId, instant) }
  }

  /** Returns whether `code` is a correct code for the address of the caller's account. Uses up a correct code. */
  async function verifyOwner({ userId, sessionId }: Caller, code: string): Promise<boolean> {
    const owner = await users.find(sql, userId)
    const attempt = owner && (await guess({ email: owner.email, sessionId }, code))
    return attempt !== undefined && codes.spend(sql, attempt)
  }

  return { requestCode, verifyCode, verifyOwner }
}

function alreadyRegistered(): AppError {
  return invalid({
    email: [{ fr: 'Cette adresse e-mail a déjà un compte.', en: 'This e-mail address already has an account.' }],
  })
}

function mustWait(seconds: number): AppError {
  return new AppError(
    'wait',
    {
      fr: 'Un code vient d’être envoyé. Patientez avant d’en demander un autre.',
      en: 'A code was just sent. Wait before you request another code.',
    },
    { headers: { 'retry-after': String(seconds) } },
  )
}

/**
 * Uses up a correct code and opens a session. If the code belongs to a sign-up, `openSession` creates the account. If
 * the code belongs to a sign-in and a language is given, `openSession` stores the language in the account. One statement makes all these
 * changes, so either all changes take effect or none.
 *
 * If several requests with the code run concurrently, only one of these requests deletes the code's row. So only this
 * request opens a session.
 *
 * An earlier sign-up may have created the account. An address has only one live code for a sign-up. So the code of the
 * earlier sign-up was used up before this code was issued. Therefore this statement's snapshot contains the account,
 * and the subquery `existing` finds the account.
 * @returns undefined if another request deleted the code's row, or if a new code replaced this code after the
 *   comparison. The new code has another id, so this statement does not delete the new code
 */
export async function openSession(
  sql: Sql,
  attempt: codes.Attempt,
  language: Language | undefined,
  now: Date,
): Promise<Omit<SignedIn, 'token'> | undefined> {
  const [session] = await sql<{ id: string; user_id: number; is_new_user: boolean }>`
    with spent as (
      delete from sign_in_code where id = ${attempt.id} and purpose <> 'decoy'
      returning email, purpose, first_name, last_name, terms_version, terms_accepted_at
    ), created as (
      insert into app_user (email, first_name, last_name, locale, terms_version, terms_accepted_at,
        created_at, updated_at)
      select email, first_name, last_name, coalesce(${language}, 'fr'), terms_version, terms_accepted_at, ${now}, ${now}
      from spent where purpose = 'sign_up'
      on conflict on constraint app_user_email_key do nothing
      returning id
    ), existing as (
      update app_user set locale = coalesce(${language}, locale),
        updated_at = case when locale = coalesce(${language}, locale) then updated_at else ${now} end
      from spent where app_user.email = spent.email
      returning app_user.id
    ), account as (
      select id, true as is_new from created union all select id, false from existing
    )
    insert into session (user_id, created_at, expires_at, issued_at)
    select id, ${now}, ${sessionEnd(now)}, ${now} from account
    returning id, user_id, (select is_new from account) as is_new_user`
  return session && { userId: session.user_id, sessionId: session.id, isNewUser: session.is_new_user }
}
