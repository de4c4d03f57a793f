import { createHmac } from 'node:crypto'
import { createBuckets } from '../../src/auth/budgets.ts'
import { createGuess } from '../../src/auth/guess.ts'
import { issueCode } from '../../src/auth/issue-code.ts'
import { openSession } from '../../src/auth/open-session.ts'
import type { Sql } from '../../src/db/sql.ts'
import { deriveKeys } from '../../src/keys.ts'

/**
 * Creates the handlers of the ceiling, the minimal server in `ceiling.ts`, for the two requests of a sign-up. The
 * handlers run the statements of the throttle and of the sign-up, hash and encrypt the code, and sign the token.
 */
export function createSignInCeiling(sql: Sql) {
  const keys = deriveKeys([process.env.JWT_SECRET!])
  // Like the service with the development mailbox, the ceiling counts no guesses.
  const rules = { buckets: createBuckets(undefined), signUpLimits: undefined }
  const guess = createGuess({ sql, keys, buckets: rules.buckets, now: () => new Date() })
  const toCaller = (email: string, client: string) => ({
    email,
    sessionId: undefined,
    network: createHmac('sha256', 'network').update(client).digest().subarray(0, 16),
  })

  // This statement is copied from rate-limiter-flexible, the library that the service uses.
  async function count(key: string): Promise<void> {
    const now = Date.now()
    await sql`
      insert into throttle values (${key}, 1, ${now + 60_000})
      on conflict (key) do update set
        points = case when throttle.expire <= ${now} then 1 else throttle.points + 1 end,
        expire = case when throttle.expire <= ${now} then ${now + 60_000} else throttle.expire end
      returning points, expire`
  }

  return {
    async request({ email, first_name, last_name }: Record<string, string>, client: string) {
      await count(`request-otp:${client}`)
      const now = new Date()
      const profile = { firstName: first_name!, lastName: last_name!, termsVersion: '1' }
      await issueCode(sql, keys, { requester: toCaller(email!, client), profile, language: 'fr', ...rules }, now)
      return { message: 'Si cette adresse peut se connecter, un code vient de lui être envoyé.' }
    },

    async verify({ email, code }: Record<string, string>, client: string) {
      await count(`verify-otp:${client}`)
      const now = new Date()
      const caller = toCaller(email!, client)
      const guessed = await guess(caller, code!)
      if (guessed.outcome !== 'right') return {}
      const opened = await openSession(sql, rules.buckets, { caller, success: guessed.success, language: 'fr' }, now)
      return { access_token: sign(String(opened!.userId), opened!.sessionId, now), is_new_user: opened!.isNewUser }
    },
  }
}

function sign(sub: string, sid: string, now: Date): string {
  const iat = Math.floor(now.getTime() / 1000)
  const claims = { iss: 'courtside', sub, iat, nbf: iat, exp: iat + 3600, jti: `${sid}.1`, sid }
  const [header, payload] = [{ alg: 'HS256', typ: 'JWT' }, claims].map(part =>
    Buffer.from(JSON.stringify(part)).toString('base64url'),
  )
  const mac = createHmac('sha256', process.env.JWT_SECRET!).update(`${header}.${payload}`).digest('base64url')
  return `${header}.${payload}.${mac}`
}
