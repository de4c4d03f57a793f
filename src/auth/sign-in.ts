import * as users from '../accounts/users.ts'
import { type Hints, OUTBOX_HINT } from '../db/hints.ts'
import type { Sql } from '../db/sql.ts'
import { AppError, invalid } from '../errors.ts'
import type { Caller } from '../http/route.ts'
import type { RequestSlots } from '../http/slots.ts'
import type { Keys } from '../keys.ts'
import type { Language } from '../language.ts'
import type { MailBacklog } from '../limits/mail-backlog.ts'
import type { Networks } from '../limits/network-key.ts'
import { createGuess } from './guess.ts'
import { issueCode } from './issue-code.ts'
import type { Tokens } from './jwt.ts'
import { findTokenSession, type KnownClient } from './known-clients.ts'
import type { Requester, Rules } from './new-code.ts'
import { openSession, spend } from './open-session.ts'
import { signFirstToken } from './session-tokens.ts'

type Dependencies = {
  sql: Sql
  keys: Keys
  networks: Networks
  tokens: Tokens
  mailBacklog: MailBacklog
  hints: Hints
  now: () => Date
  rules: Rules
  slots: RequestSlots
  sessionDays: number
}

/**
 * A request to one of the two code routes. If its token is one of a known client of the account, `known` is the
 * requester. Otherwise the network of `client` is the requester. `client` is the result of `clientKey`.
 */
type CodeCall = { email: string; known: KnownClient | undefined; client: string }

/** `waitSeconds` is the time that the caller must wait before it requests the next code. */
export type SentCode = { outcome: 'sent' | 'decoy'; waitSeconds: number }

export type SignedIn = { userId: number; sessionId: string; token: string; isNewUser: boolean }

/**
 * The result of a verification. `hasSpentBudget`: a wrong guess spent the budget of the installation. `nextPart` is the
 * index of the part of the code that is due.
 */
export type Verified = { hasSpentBudget: boolean } & (
  | { outcome: 'wrong' }
  | { outcome: 'continue'; nextPart: number }
  | { outcome: 'signed-in'; signedIn: SignedIn }
)

/** The result of the check of a code for a deletion. */
export type OwnerCheck = { hasSpentBudget: boolean } & (
  | { outcome: 'wrong' | 'right' }
  | { outcome: 'continue'; nextPart: number }
)

export type SignIn = ReturnType<typeof createSignIn>

/** Creates the functions that request and verify sign-in codes. */
export function createSignIn(dependencies: Dependencies) {
  const { sql, keys, networks, tokens, mailBacklog, hints, now, rules, slots, sessionDays } = dependencies
  const { buckets } = rules
  const guess = createGuess({ sql, keys, buckets, now })

  async function toRequester({ email, known, client }: CodeCall): Promise<Requester> {
    return { email, sessionId: known?.sessionId, network: await networks.hashNetwork(client) }
  }

  /**
   * Waits for a slot and guesses. Strangers' guesses wait for each other (see `createInstallationBudget`). So they have
   * separate slots, and never take those of other requests.
   */
  function guessInSlot<T>({ sessionId }: Requester, work: () => Promise<T>): Promise<T> {
    return (sessionId === undefined ? slots.strangers : slots.writes).run(work)
  }

  /**
   * Sends a code to an address, in a mail in `language`. A request with a profile is a sign-up. The outcome `decoy`
   * means that no mail is sent. Only the metrics may use the outcome, because it reveals whether the address has an
   * account.
   * @throws AppError 422 that names the field `email`, if the request is a sign-up and the address already has an
   *   account
   * @throws AppError 503 if the mail would go to a stranger and too many mails wait in the outbox
   * @throws AppError 429 `wait` if the wait after the previous code is not over
   * @throws AppError 429 `throttled` if there are too many unfinished sign-ups
   */
  async function requestCode(
    call: CodeCall & { profile: users.Profile | undefined; language: Language | undefined; isShared: boolean },
  ): Promise<SentCode> {
    const { known, profile, language, isShared } = call
    const requester = await toRequester(call)
    // This check comes before the check whether the address has an account, so it does not reveal this fact.
    if (!known?.hasMails) mailBacklog.check(profile ? 'signUp' : 'account')
    // People at a club sign up through one network, so a shared network has no limit.
    const signUpLimits = isShared ? undefined : rules.signUpLimits
    return hints.sendAfter(async changed => {
      changed.add(OUTBOX_HINT)
      const issued = await issueCode(sql, keys, { requester, profile, language, buckets, signUpLimits }, now())
      if (issued.outcome === 'registered') throw alreadyRegistered()
      if (issued.outcome === 'wait') throw mustWait(issued.waitSeconds)
      if (issued.outcome === 'limit') throw tooManySignUps(issued.waitSeconds)
      return { outcome: issued.isDecoy ? 'decoy' : 'sent', waitSeconds: issued.waitSeconds }
    })
  }

  /**
   * Exchanges a code for a token. If the code belongs to a sign-up, `verifyCode` creates the account. Stores `language`
   * in the account. If `language` is undefined, an existing account keeps its language, and a new account gets French.
   * The outcome is `wrong` if the code is wrong, expired, used or replaced, or has no attempts left or too few parts.
   * The outcome is also `wrong` if the address is unknown.
   */
  async function verifyCode(call: CodeCall & { code: string; language: Language | undefined }): Promise<Verified> {
    const { code, language } = call
    const caller = await toRequester(call)
    return guessInSlot(caller, async () => {
      const guessed = await guess(caller, code)
      if (guessed.outcome !== 'right') return guessed
      const { success, hasSpentBudget } = guessed
      const instant = now()
      const opened = await openSession(sql, buckets, { caller, success, language, sessionDays }, instant)
      if (!opened) return { outcome: 'wrong', hasSpentBudget }
      const signedIn = { ...opened, token: signFirstToken(tokens, opened.userId, opened.sessionId, instant) }
      return { outcome: 'signed-in', signedIn, hasSpentBudget }
    })
  }

  /**
   * Compares `code` with the codes that `verifyCode` would accept from this caller. Uses up a right code.
   * @param client as in `CodeCall`
   */
  async function verifyOwner({ userId, sessionId }: Caller, client: string, code: string): Promise<OwnerCheck> {
    const user = await users.find(sql, userId)
    if (!user) return { outcome: 'wrong', hasSpentBudget: false }
    const { email } = user
    const session = await findTokenSession(sql, { sub: userId, sid: sessionId }, email, now())
    const caller = await toRequester({ email, known: session?.isKnown ? session : undefined, client })
    return guessInSlot(caller, async () => {
      const guessed = await guess(caller, code)
      if (guessed.outcome !== 'right') return guessed
      const { success, hasSpentBudget } = guessed
      const isSpent = await spend(sql, buckets, { caller, success }, now())
      return { outcome: isSpent ? 'right' : 'wrong', hasSpentBudget }
    })
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

function tooManySignUps(seconds: number): AppError {
  return new AppError(
    'throttled',
    {
      fr: 'Trop d’inscriptions n’ont pas été terminées. Réessayez plus tard.',
      en: 'Too many sign-ups were not finished. Try again later.',
    },
    { headers: { 'retry-after': String(seconds) } },
  )
}
