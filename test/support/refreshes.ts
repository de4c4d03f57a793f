import assert from 'node:assert/strict'
import type { Harness } from './app.ts'

type Caller = Pick<Harness, 'call'>
type Options = { headers?: Record<string, string>; remoteAddress?: string }

/** Sends a token to `POST /api/v1/auth/refresh`. */
export function refresh({ call }: Caller, token: string, options: Options = {}) {
  return call('POST', '/api/v1/auth/refresh', { token, ...options })
}

/** Refreshes a token. @returns the new token */
export async function renew(caller: Caller, token: string, options: Options = {}): Promise<string> {
  const answer = await refresh(caller, token, options)
  assert.equal(answer.status, 200, answer.text)
  return answer.body.access_token
}

/** Returns the status of the answer to `GET /api/v1/auth/me`. */
export async function getMeStatus({ call }: Caller, token: string): Promise<number> {
  return (await call('GET', '/api/v1/auth/me', { token })).status
}
