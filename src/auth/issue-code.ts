import { randomBytes, randomInt, randomUUID } from 'node:crypto'
import type { Profile } from '../accounts/users.ts'
import type { Sql } from '../db/sql.ts'
import { fragment } from '../db/statement.ts'
import type { Keys } from '../keys.ts'
import type { Language } from '../language.ts'
import { CODE_LIFETIME_MS, SEND_COOLDOWN_SECONDS } from './code-limits.ts'
import { buildPartId, MAX_PARTS } from './code-parts.ts'
import { computeWaitSeconds, decideRequest } from './issue-decision.ts'
import { writeCode } from './issue-writes.ts'
import type { NewCode, Requester, Rules } from './new-code.ts'
import { queueMail } from './queue-mail.ts'
import { computeSignUpLimitEnd, uncountForNetwork, wasCounted } from './sign-up-limits.ts'

/**
 * A request for a code. A request with a `profile` is a sign-up. A request without a `profile` is a sign-in, or it
 * resumes a pending sign-up. `language` is the language of the mail. If `language` is undefined, the mail has the
 * language of the account.
 */
export type CodeRequest = { requester: Requester; profile: Profile | undefined; language: Language | undefined }

export type Issued =
  /** `waitSeconds` is the time that the same client must wait before it requests the next code. */
  | { outcome: 'sent'; isDecoy: boolean; waitSeconds: number }
  /** No code was issued, because the request is a sign-up and the address already has an account. */
  | { outcome: 'registered' }
  | { outcome: 'wait'; waitSeconds: number }
  /** There are too many unfinished sign-ups. */
  | { outcome: 'limit'; waitSeconds: number }

type Stored = {
  verdict: 'registered' | 'wait' | 'limit' | 'send'
  purpose: 'registered' | 'sign_up' | 'sign_in' | 'decoy'
  is_sent: boolean
  /** Whether the request counts as a sign-up of its network. */
  is_counted: boolean
  wait_seconds: number
}

/**
 * Issues a code for a requester, or refuses the request. One statement stores a new code, or repeats the requester's
 * code, and adds its mail to the outbox. A worker sends the mail. For an unknown address, the statement stores a decoy
 * and adds a row to the outbox too. The worker sends no mail for this row.
 *
 * If the address has a pending sign-up from the same network, a request without a profile resumes this sign-up.
 * Otherwise a request without a profile is a sign-in.
 */
export async function issueCode(
  sql: Sql,
  keys: Keys,
  { requester, profile, language, buckets, signUpLimits }: CodeRequest & Rules,
  now: Date,
): Promise<Issued> {
  const id = randomUUID()
  const parts = drawParts()
  const stored = await storeCode(sql, {
    ...requester,
    buckets,
    signUpLimits,
    signsUp: profile !== undefined,
    profile,
    language,
    id,
    macs: parts.map((part, index) => keys.mac(buildPartId(id, index), part)),
    seals: parts.map((_, index) => keys.seal(id, parts.slice(0, index + 1).join(' '))),
    randomMac: randomBytes(32),
    now,
    expiresAt: new Date(now.getTime() + CODE_LIFETIME_MS),
  })
  const { verdict, purpose, is_sent, is_counted, wait_seconds } = stored
  if (is_sent) return { outcome: 'sent', isDecoy: purpose === 'decoy', waitSeconds: wait_seconds }
  if (is_counted) await uncountForNetwork(sql, requester.network)
  if (verdict === 'registered') return { outcome: 'registered' }
  return { outcome: verdict === 'limit' ? 'limit' : 'wait', waitSeconds: wait_seconds }
}

/** Returns different random parts. The statement decides how many of them the code has. */
function drawParts(): string[] {
  const parts = new Set<string>()
  while (parts.size < MAX_PARTS) parts.add(randomInt(10_000).toString().padStart(4, '0'))
  return [...parts]
}

async function storeCode(sql: Sql, code: NewCode): Promise<Stored> {
  const { buckets, signUpLimits, now } = code
  const [stored] = await sql<Stored>`
    with ${decideRequest(code)}, ${writeCode(code)}, ${queueMail(code)}
    select verdict, verdict.purpose, issued.id is not null as is_sent, ${wasCounted(signUpLimits)} as is_counted,
      case
        when issued.id is not null
          then case when is_known then ${SEND_COOLDOWN_SECONDS}
            else ${computeWaitSeconds(buckets.isOn, fragment`issued.mails`)} end
        when verdict = 'limit' then ceil(extract(epoch from
          ${signUpLimits ? computeSignUpLimitEnd(code, signUpLimits) : NO_TIME} - ${now}::timestamptz))
        when verdict = 'wait' then ceil(extract(epoch from ends_at - ${now}::timestamptz))
        -- A concurrent request for a new address has just sent a code. So the answer names a whole cooldown.
        else ${SEND_COOLDOWN_SECONDS}
      end::int as wait_seconds
    from verdict left join issued on true`
  return stored!
}

const NO_TIME = fragment`null::timestamptz`
