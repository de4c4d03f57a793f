import assert from 'node:assert/strict'
import { deriveKeys } from '../src/keys.ts'
import { administer } from './postgres.ts'
import { JWT_SECRET, type Program } from './programs.ts'
import { post, randomClientHeader } from './requests.ts'

/** The requests that sign a user up with one of the measured programs. */
export type SignUpApi = {
  /** The ports on which the program answers. */
  ports: number[]
  requestCode: (email: string) => string
  /**
   * Returns the codes that the program has made without mailing them since the last call. The keys of the map are
   * e-mail addresses.
   */
  takeCodes: () => Promise<Map<string, string>>
  verifyCode: (email: string, code: string) => string
  /** Checks the answer to the second request. @throws AssertionError if the answer does not contain a new account */
  check: (body: any) => void
}

export function courtsideApi(program: Program, url: string): SignUpApi {
  const keys = deriveKeys([JWT_SECRET])
  let after = new Date(0).toISOString()
  return {
    ports: [program.port],
    requestCode: email => {
      const body = { email, first_name: 'Marie', last_name: 'Durand', accept_cgu: true }
      return post('/api/v1/auth/request-otp', body, undefined, randomClientHeader())
    },
    async takeCodes() {
      const since = after
      after = new Date().toISOString()
      const rows = await administer(
        url,
        `select email, id, sealed from sign_in_code where purpose = 'sign_up' and sent_at > '${since}'`,
      )
      return new Map(rows.map(({ email, id, sealed }) => [email, keys.open(id, sealed)!]))
    },
    verifyCode: (email, code) => post('/api/v1/auth/verify-otp', { email, code }, undefined, randomClientHeader()),
    check: body => {
      assert.equal(body.is_new_user, true)
      assert.match(body.access_token, /^ey/)
    },
  }
}

/** The ceiling has the routes of the service. */
export function ceilingApi(program: Program): SignUpApi {
  return { ...courtsideApi(program, ''), takeCodes: () => takeKeptCodes([program]) }
}

export function betterAuthApi(programs: Program[]): SignUpApi {
  return {
    ports: programs.map(({ port }) => port),
    requestCode: email =>
      post('/api/auth/email-otp/send-verification-otp', { email, type: 'sign-in' }, undefined, randomClientHeader()),
    takeCodes: () => takeKeptCodes(programs),
    verifyCode: (email, otp) =>
      post('/api/auth/sign-in/email-otp', { email, otp, name: 'Marie Durand' }, undefined, randomClientHeader()),
    check: body => {
      assert.equal(body.user.name, 'Marie Durand')
      assert.ok(body.token)
    },
  }
}

async function takeKeptCodes(programs: Program[]): Promise<Map<string, string>> {
  const codes = await Promise.all(
    programs.map(async ({ port }) => {
      const answer = await fetch(`http://127.0.0.1:${port}/mailed`)
      return Object.entries((await answer.json()) as Record<string, string>)
    }),
  )
  return new Map(codes.flat())
}
