import assert from 'node:assert/strict'
import type { Harness } from './app.ts'

let emailCount = 0

/** Returns an address that no account uses yet. */
export function newEmail(): string {
  emailCount += 1
  return `person${emailCount}@example.com`
}

export function profile(email: string) {
  return { email, first_name: 'Marie', last_name: 'Durand', accept_cgu: true as const }
}

/**
 * Returns the newest sign-in code for an address that a stranger or a session requested. No worker runs, so this
 * function decrypts the code with the key of the service. A code of several parts is a text such as "4921 0377". Fails
 * if two networks requested codes at the same time, unless `network` names the one to read.
 * @param network the address of a stranger. If it is undefined, the stranger may have any network
 */
export async function queuedCode(
  { ctx, database }: Pick<Harness, 'ctx' | 'database'>,
  email: string,
  sessionId: string | null = null,
  network?: string,
): Promise<string> {
  const hash = network === undefined ? null : await ctx.networks.hashNetwork(network)
  const [code, next] = await database.sql<{ id: string; sealed: string; sent_at: Date }>`
    select id, sealed, sent_at from sign_in_code
    where email = ${email} and session_id is not distinct from ${sessionId}::uuid and sealed is not null
      and (${hash}::bytea is null or network = ${hash})
    order by sent_at desc limit 2`
  assert.ok(code, 'no code is queued for this address')
  assert.notDeepEqual(next?.sent_at, code.sent_at, 'two codes are equally new; name the network of the requester')
  return ctx.keys.open(code.id, code.sealed)!
}

/** Returns a code that differs from the given code. */
export function otherThan(code: string): string {
  return code === '0000' ? '0001' : '0000'
}

/** Signs up a new user with `request-otp` and `verify-otp`. */
export async function signUp(h: Harness, email = newEmail()): Promise<{ email: string; token: string }> {
  const asked = await h.call('POST', '/api/v1/auth/request-otp', { body: profile(email) })
  assert.equal(asked.status, 200, asked.text)
  return { email, token: await verify(h, email) }
}

/** Moves the clock forward by one minute, and signs in an existing user. */
export async function signIn(h: Harness, email: string): Promise<{ email: string; token: string }> {
  h.clock.advance(60_000)
  const asked = await h.call('POST', '/api/v1/auth/request-otp', { body: { email } })
  assert.equal(asked.status, 200, asked.text)
  return { email, token: await verify(h, email) }
}

async function verify(h: Harness, email: string): Promise<string> {
  const verified = await h.call('POST', '/api/v1/auth/verify-otp', {
    body: { email, code: await queuedCode(h, email) },
  })
  assert.equal(verified.status, 200, verified.text)
  return verified.body.access_token
}

/** Returns the payload of a token without verifying it. */
export function readPayload(token: string): Record<string, any> {
  return JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString())
}
