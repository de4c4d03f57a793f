import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { harness, INTAKE_KEY } from '../support/app.ts'
import { type Exchanged, httpConnection } from '../support/connection.ts'
import { BATCH, EVENTS } from '../support/games.ts'
import { signUp } from '../support/scenario.ts'
import { describeAnswer, readSuite, skip } from '../support/suites.ts'

type Body = { name: string; bytes: Buffer }
type Endpoint = { method: string; path: string; type?: string; maxBytes?: number; optional?: boolean; list?: boolean }

// The name of a body starts with `y_` for valid JSON, with `n_` for invalid JSON, and with `i_` if a parser may accept
// or reject the body.
describe('the bodies of JSONTestSuite', { skip }, () => {
  const h = harness()
  const bodies: Body[] = readSuite<{ name: string; base64: string }[]>('json-bodies.json').map(({ name, base64 }) => ({
    name,
    bytes: Buffer.from(base64, 'base64'),
  }))
  let port = 0
  let token = ''
  before(async () => {
    await h.app.listen({ port: 0, host: '127.0.0.1' })
    port = (h.app.server.address() as { port: number }).port
    token = (await signUp(h)).token
  })

  const endpoints: Endpoint[] = [
    { method: 'POST', path: '/api/v1/auth/request-otp' },
    { method: 'POST', path: '/api/v1/auth/verify-otp' },
    { method: 'POST', path: '/api/v1/auth/level-assessment' },
    { method: 'DELETE', path: '/api/v1/auth/me' },
    { method: 'POST', path: '/api/v1/notifications/read-all', optional: true },
    { method: 'POST', path: EVENTS },
    { method: 'POST', path: EVENTS, type: 'application/cloudevents+json' },
    { method: 'POST', path: EVENTS, type: BATCH, maxBytes: 1024 * 1024, list: true },
  ]
  for (const endpoint of endpoints) {
    const { method, path, type = 'application/json' } = endpoint
    test(`each body sent to ${method} ${path} as ${type} gets exactly one answer, with an expected status`, async t => {
      const connection = httpConnection(port)
      t.after(() => connection.close())
      const authorization = `Bearer ${path === EVENTS ? INTAKE_KEY : token}`
      for (const body of bodies) {
        const headers = { authorization, 'content-type': type }
        const answer = await connection.exchange(method, path, headers, body.bytes).catch(error => {
          throw new Error(body.name, { cause: error })
        })
        assertAnswer(endpoint, body, answer)
      }
      const last = await connection.exchange('GET', '/api/v1/nowhere', {}, Buffer.alloc(0))
      assert.deepEqual([last.status, JSON.parse(last.text).code], [404, 'not_found'])
    })
  }
})

function assertAnswer(endpoint: Endpoint, body: Body, answer: Exchanged): void {
  const allowed = allowedStatuses(endpoint, body)
  assert.ok(allowed.includes(answer.status), `${describeAnswer(body.name, answer)}, expected ${allowed}`)
  const { code, errors, results } = JSON.parse(answer.text)
  if (answer.status === 200 && endpoint.list) {
    // JSONTestSuite contains no valid event, so the service rejects each item of a batch.
    for (const { status } of results) assert.equal(status, 'rejected', describeAnswer(body.name, answer))
  }
  if (answer.status === 413) assert.equal(code, 'payload_too_large', describeAnswer(body.name, answer))
  if (answer.status === 422) {
    assert.equal(code, 'validation_failed', describeAnswer(body.name, answer))
    assert.ok(Object.keys(errors).length > 0, describeAnswer(body.name, answer))
    if (body.name.startsWith('n_') && body.bytes.length > 0) {
      assert.deepEqual(Object.keys(errors), ['body'], describeAnswer(body.name, answer))
    }
  }
}

function allowedStatuses({ maxBytes = 64 * 1024, optional, list }: Endpoint, { name, bytes }: Body): number[] {
  if (bytes.length > maxBytes) return [413]
  if (bytes.length === 0) return optional ? [200] : [422]
  if (name.startsWith('n_')) return [422]
  if (name.startsWith('i_')) return optional || list ? [200, 422] : [422]
  const value = JSON.parse(bytes.toString('utf8'))
  if (list) return Array.isArray(value) ? [200] : [422]
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  return optional && isObject && !JSON.stringify(value).includes('\\u0000') ? [200] : [422]
}
