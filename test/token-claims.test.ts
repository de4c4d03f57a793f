// The games service may have the secret, so a token with a valid signature can contain any claims.
import assert from 'node:assert/strict'
import { createHmac, randomUUID } from 'node:crypto'
import { before, describe, test } from 'node:test'
import fc from 'fast-check'
import { describe as describeApi } from '../src/cli/openapi.ts'
import { harness, JWT_SECRET } from './support/app.ts'
import { listOperations } from './support/documented.ts'
import { listen } from './support/event-stream.ts'
import { makeNotifications, makeUser } from './support/factories.ts'
import { newEmail, readPayload } from './support/scenario.ts'

const h = harness()
const operations = listOperations(await describeApi()).filter(({ operation }) =>
  operation.security.some(scheme => 'bearer' in scheme || 'intakeKey' in scheme),
)

const BODIES: Record<string, object> = {
  requestOtp: { email: newEmail() },
  verifyOtp: { email: newEmail(), code: '0427' },
  deleteMe: { code: '0427' },
  assessLevel: { game_level_id: 1 },
  deletePushSubscription: { endpoint: 'https://fcm.googleapis.com/fcm/send/example' },
}
const encode = (value: unknown) => Buffer.from(JSON.stringify(value) ?? 'null').toString('base64url')

/** Signs a payload with the header of `token`, which contains the key id of the service. */
function sign(token: string, payload: unknown): string {
  const signed = `${token.split('.')[0]}.${encode(payload)}`
  return `${signed}.${createHmac('sha256', JWT_SECRET).update(signed).digest('base64url')}`
}

/** Sends a request. @returns the status of the answer */
async function send(method: string, url: string, token: string, body: object | undefined): Promise<number> {
  const headers = { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) }
  const response = await fetch(url, { method, headers, ...(body && { body: JSON.stringify(body) }) })
  await response.body?.cancel()
  return response.status
}

// Values that resemble a right value: the types of PostgreSQL that they do not fit, and the limits of these types.
const hex = fc.string({ unit: fc.constantFrom(...'0123456789abcdefABCDEF-'), minLength: 30, maxLength: 40 })
const uuidLike = fc.oneof(
  fc.uuid(),
  fc.uuid().map(text => text.toUpperCase()),
  fc.uuid().map(text => text.replaceAll('-', '')),
  fc.uuid().map(text => `{${text}}`),
  fc.constantFrom('-'.repeat(36), '0'.repeat(36), `${randomUUID()}\n`, `${randomUUID()}\0`),
  hex,
)
const LIMITS = [
  0,
  2 ** 31 - 1,
  2 ** 31,
  1e9,
  1e9 + 1,
  2 ** 53 - 1,
  2 ** 53,
  8.64e12,
  8.64e12 + 1,
  8.64e15,
  2 ** 63,
  1e300,
]
const number = fc.oneof(fc.constantFrom(...LIMITS, ...LIMITS.map(limit => -limit)), fc.maxSafeInteger(), fc.double())
const anyValue = fc.oneof(
  fc.jsonValue({ stringUnit: 'binary' }),
  number,
  number.map(String),
  fc.bigInt({ min: 0n, max: 10n ** 20n }).map(String),
  uuidLike,
  fc.tuple(uuidLike, number).map(parts => parts.join('.')),
)

/** `String` throws for an object with a member named toString. */
const asText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

describe('a token with a valid signature and any claims', () => {
  let address: string
  before(async () => {
    address = await listen(h.app)
  })

  /** Changes one claim, or `sid` together with the `jti` that must begin with it, or all claims. */
  const claims: fc.Arbitrary<Record<string, unknown>> = fc.oneof(
    fc
      .tuple(fc.constantFrom('iss', 'sub', 'sid', 'jti', 'iat', 'nbf', 'exp', 'aud', 'crit'), anyValue)
      .map(([name, value]) => ({ [name]: value })),
    fc
      .tuple(fc.oneof(uuidLike, anyValue.map(asText)), number)
      .map(([sid, generation]) => ({ sid, jti: `${sid}.${generation}` })),
    number.map(generation => ({ generation })),
    fc.record({ iat: number, nbf: number, exp: number }, { requiredKeys: [] }),
    fc.record({ sub: anyValue, sid: anyValue, jti: anyValue, iat: anyValue, nbf: anyValue, exp: anyValue }),
  )

  for (const { method, path, operation } of operations) {
    // The code routes ignore an unusable token.
    const isOptional = operation.security.some(scheme => Object.keys(scheme).length === 0)
    const permitted = Object.keys(operation.responses)
      .map(Number)
      .filter(status => status < 500)

    test(`${method} ${path} answers such a token with a documented status below 500, and with 401 if it names another session`, async () => {
      const { id, token } = await makeUser(h)
      const [notificationId] = await makeNotifications(h, id, 1)
      const url = `${address}${path.replace('{id}', String(notificationId))}`
      const right = readPayload(token)
      await fc.assert(
        fc.asyncProperty(claims, async ({ generation, ...changed }) => {
          const jti = generation === undefined ? right.jti : `${right.sid}.${generation}`
          const payload = { ...right, jti, ...changed } as typeof right
          const status = await send(method, url, sign(token, payload), BODIES[operation.operationId!])
          // An earlier token of the session may still delete a subscription.
          const isOfToken = payload.jti === right.jti || operation.operationId === 'deletePushSubscription'
          const isOwn = payload.sub === right.sub && payload.sid === right.sid && isOfToken
          assert.ok(permitted.includes(status), `${status} ${JSON.stringify(changed)}`)
          assert.ok(isOptional || isOwn || status === 401, `${status} ${JSON.stringify(changed)}`)
          // The clock moves past the wait between two codes.
          if (operation.operationId === 'requestOtp') h.clock.advance(60_000)
        }),
        { numRuns: 300 },
      )
    })
  }

  test('a token of more than 1024 characters gets 401, although its claims and its signature are right', async () => {
    const { token } = await makeUser(h)
    const statuses = []
    for (const length of [100, 1024]) {
      const payload = { ...readPayload(token), note: 'x'.repeat(length) }
      statuses.push((await h.call('GET', '/api/v1/auth/me', { token: sign(token, payload) })).status)
    }
    assert.deepEqual(statuses, [200, 401])
  })

  test('any JSON value as the payload gets 401', async () => {
    const { token } = await makeUser(h)
    await fc.assert(
      fc.asyncProperty(fc.oneof(anyValue, fc.array(anyValue)), async payload => {
        const answer = await h.call('GET', '/api/v1/auth/me', { token: sign(token, payload) })
        assert.equal(answer.status, 401)
      }),
      { numRuns: 500 },
    )
  })
})
