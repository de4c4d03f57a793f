import assert from 'node:assert/strict'
import type { Harness } from './app.ts'

/** The table of endpoints in the specification: method, path, and whether a valid Bearer JWT is required. */
export const ENDPOINTS = [
  ['POST', '/api/v1/auth/request-otp', 'no'],
  ['POST', '/api/v1/auth/verify-otp', 'no'],
  ['POST', '/api/v1/auth/refresh', 'yes'],
  ['POST', '/api/v1/auth/logout', 'yes'],
  ['GET', '/api/v1/auth/me', 'yes'],
  ['POST', '/api/v1/auth/level-assessment', 'yes'],
  ['GET', '/api/v1/game-levels', 'no'],
  ['GET', '/api/v1/notifications', 'yes'],
  ['GET', '/api/v1/notifications/unread-count', 'yes'],
  ['POST', '/api/v1/notifications/{id}/read', 'yes'],
  ['POST', '/api/v1/notifications/read-all', 'yes'],
  ['DELETE', '/api/v1/notifications/{id}', 'yes'],
] as const

type Answer = Awaited<ReturnType<Harness['call']>>

/**
 * Asserts that an answer is an error with the given status, the given error code, a message, and no undeclared member.
 * @param fields the names that `errors` must contain; if no names are given, the error must have no `errors`
 */
export function assertError(answer: Answer, status: number, code: string, ...fields: string[]): void {
  assert.equal(answer.status, status, answer.text)
  assert.deepEqual(Object.keys(answer.body), ['message', 'code', ...(fields.length > 0 ? ['errors'] : [])])
  assert.equal(answer.body.code, code)
  assert.equal(typeof answer.body.message, 'string')
  assert.notEqual(answer.body.message, '')
  if (fields.length > 0) assert.deepEqual(Object.keys(answer.body.errors), fields)
}
