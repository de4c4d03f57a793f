// This file has one test for each sentence of the specification's chapters "Errors", "Limits" and "Versioning". The
// throttle has its default limits. Before each test, the clock moves forward by one minute, so the throttle does not
// count the requests of earlier tests.
import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { STATUS } from '../../src/http/failure.ts'
import { harness } from '../support/app.ts'
import { assertError, ENDPOINTS } from '../support/endpoints.ts'
import { makeNotifications, makeUser } from '../support/factories.ts'
import { newEmail, otherThan, profile, queuedCode, readPayload, signUp } from '../support/scenario.ts'

const h = harness({ THROTTLE_REQUEST_OTP: '', THROTTLE_VERIFY_OTP: '' })
beforeEach(() => h.clock.advance(60_000))

const MINUTE_MS = 60_000

const requestCode = (body: unknown, remoteAddress?: string) =>
  h.call('POST', '/api/v1/auth/request-otp', { body, ...(remoteAddress && { remoteAddress }) })
const verifyCode = (body: unknown) => h.call('POST', '/api/v1/auth/verify-otp', { body })
const getMe = (token?: string) => h.call('GET', '/api/v1/auth/me', { token })

async function signUpCode(): Promise<{ email: string; code: string }> {
  const email = newEmail()
  assert.equal((await requestCode(profile(email))).status, 200)
  return { email, code: await queuedCode(h, email) }
}

/**
 * Sends requests until the answer is a 429.
 * @returns the number of requests before the throttled request
 * @throws Error after 100 requests without a 429
 */
async function countUntilThrottled(request: () => Promise<{ status: number }>): Promise<number> {
  for (let count = 0; count < 100; count += 1) if ((await request()).status === 429) return count
  throw new Error('100 requests were not throttled')
}

describe('Errors', () => {
  test('"401 | Unauthorized | token absent, expired or invalid"', async () => {
    const { token } = await makeUser(h)
    assertError(await getMe(), 401, 'unauthenticated')
    assertError(await getMe(`${token.slice(0, -4)}AAAA`), 401, 'unauthenticated')
    h.clock.advance(60 * MINUTE_MS)
    assertError(await getMe(token), 401, 'unauthenticated')
  })

  test('"403 | Forbidden | valid token, insufficient permissions"', async () => {
    const [owner, stranger] = [await makeUser(h), await makeUser(h)]
    const [id] = await makeNotifications(h, owner.id, 1)
    const answer = await h.call('DELETE', `/api/v1/notifications/${id}`, { token: stranger.token })
    assertError(answer, 403, 'forbidden')
  })

  test('"422 | Unprocessable Entity | validation failed (e-mail, OTP code, sign-up with an existing e-mail, and so on)"', async () => {
    const { email } = await makeUser(h)
    assertError(await requestCode({ email: 'marie@nowhere' }), 422, 'validation_failed', 'email')
    assertError(await verifyCode({ email, code: '0000' }), 422, 'otp_invalid', 'code')
    assertError(await requestCode(profile(email)), 422, 'validation_failed', 'email')
  })

  test('"429 | Too Many Requests | throttle exceeded"', async () => {
    await countUntilThrottled(() => requestCode({}))
    const answer = await requestCode({})
    assertError(answer, 429, 'throttled')
    assert.equal(answer.headers['retry-after'], '60')
  })

  test('the reason phrase of an error status is its "Meaning" in the specification', async () => {
    const address = await h.app.listen({ port: 0, host: '127.0.0.1' })
    const { token } = await makeUser(h)
    const send = async (path: string, sent = '') => {
      const headers = { authorization: `Bearer ${sent}`, connection: 'close' }
      const { status, statusText } = await fetch(address + path, { method: 'POST', headers })
      return `${status} ${statusText}`
    }
    assert.equal(await send('/api/v1/notifications/read-all'), '401 Unauthorized')
    assert.equal(await send('/internal/v1/events', token), '403 Forbidden')
    assert.equal(await send('/api/v1/auth/verify-otp'), '422 Unprocessable Entity')
    for (let request = 1; request <= 5; request += 1) await send('/api/v1/auth/request-otp')
    assert.equal(await send('/api/v1/auth/request-otp'), '429 Too Many Requests')
  })

  test('"Notification endpoints return errors as an object with a `message` string."', async () => {
    const { token } = await makeUser(h)
    for (const [method, path] of ENDPOINTS.filter(([, url]) => url.startsWith('/api/v1/notifications'))) {
      assertError(await h.call(method, path.replace('{id}', '1')), 401, 'unauthenticated')
      if (path.includes('{id}'))
        assertError(await h.call(method, path.replace('{id}', '0'), { token }), 404, 'not_found')
    }
    assertError(await h.call('GET', '/api/v1/notifications?page=0', { token }), 422, 'validation_failed', 'page')
  })

  test('open question: "Body shapes of 422 and 429": both have message and code, and a 422 has errors by field', async () => {
    const invalid = await requestCode({ email: 'x', accept_cgu: true })
    assert.deepEqual(invalid.body, {
      message: 'L’adresse e-mail n’est pas valide. (et 2 erreur(s) de plus)',
      code: 'validation_failed',
      errors: {
        email: ['L’adresse e-mail n’est pas valide.'],
        first_name: ['Le champ first_name est obligatoire.'],
        last_name: ['Le champ last_name est obligatoire.'],
      },
    })
    await countUntilThrottled(() => requestCode({}))
    const message = 'Trop de tentatives. Réessayez dans un instant.'
    assert.deepEqual((await requestCode({})).body, { message, code: 'throttled' })
  })

  test('open question: "any error code identifiers beyond the HTTP status": the error codes are a closed list', () => {
    const statuses = Object.entries(STATUS).map(([code, status]) => `${code} ${status}`)
    assert.equal(
      statuses.join(', '),
      'validation_failed 422, otp_invalid 422, unauthenticated 401, forbidden 403, not_found 404, ' +
        'method_not_allowed 405, payload_too_large 413, unsupported_media_type 415, event_mismatch 422, otp_continue 422, ' +
        'throttled 429, wait 429, unavailable 503, server_error 500',
    )
  })
})

describe('Limits', () => {
  test('"OTP length | 4 digits"', async () => assert.match((await signUpCode()).code, /^[0-9]{4}$/))

  test('"OTP lifetime | 15 minutes"', async () => {
    const [{ email, code }, late] = [await signUpCode(), await signUpCode()]
    h.clock.advance(15 * MINUTE_MS - 1)
    assert.equal((await verifyCode({ email, code })).status, 200)
    h.clock.advance(1)
    assertError(await verifyCode(late), 422, 'otp_invalid', 'code')
  })

  test('"OTP verification attempts | 5 before expiry"', async () => {
    const { email, code } = await signUpCode()
    for (let guess = 1; guess <= 5; guess += 1) await verifyCode({ email, code: otherThan(code) })
    assertError(await verifyCode({ email, code }), 422, 'otp_invalid', 'code')
  })

  test('"Delay between OTP sends | 60 seconds"', async () => {
    const { email } = await signUpCode()
    h.clock.advance(59_999)
    assertError(await requestCode({ email }), 429, 'wait')
    h.clock.advance(1)
    assert.equal((await requestCode({ email })).status, 200)
  })

  test('"request-otp throttle | 5 requests per minute"', async () =>
    assert.equal(await countUntilThrottled(() => requestCode({ email: newEmail() })), 5))

  test('"verify-otp throttle | 10 requests per minute"', async () =>
    assert.equal(await countUntilThrottled(() => verifyCode({ email: newEmail(), code: '0000' })), 10))

  test('"Access token lifetime | 60 minutes"', async () => {
    const { iat, exp } = readPayload((await signUp(h)).token)
    assert.equal(exp - iat, 60 * 60)
  })

  test('"Refresh lifetime | 10080 minutes"', async () => {
    const { token } = await makeUser(h)
    h.clock.advance(10080 * MINUTE_MS - 1)
    assert.equal((await h.call('POST', '/api/v1/auth/refresh', { token })).status, 200)
    h.clock.advance(1)
    assertError(await h.call('POST', '/api/v1/auth/refresh', { token }), 401, 'unauthenticated')
  })

  test('"Notifications per page | 20 in the observed response"', async () => {
    const { id, token } = await makeUser(h)
    await makeNotifications(h, id, 21)
    const { data, meta } = (await h.call('GET', '/api/v1/notifications', { token })).body
    assert.deepEqual([data.length, meta.per_page, meta.last_page], [20, 20, 2])
  })

  test('open question: "What the throttle is counted against (address, account)": the throttle counts the requests of each network address', async () => {
    assert.equal(await countUntilThrottled(() => requestCode({ email: newEmail() }, '192.0.2.1')), 5)
    assert.equal((await requestCode({ email: newEmail() }, '192.0.2.2')).status, 200)
  })

  test('open question: "The response when the 60-second delay has not passed": the request gets 429 with Retry-After', async () => {
    const { email } = await signUpCode()
    h.clock.advance(20_000)
    const answer = await requestCode({ email })
    assertError(answer, 429, 'wait')
    assert.equal(answer.headers['retry-after'], '40')
  })

  test('open question: "Whether the page size can be changed and its maximum": per_page accepts 1 to 100', async () => {
    const { id, token } = await makeUser(h)
    await makeNotifications(h, id, 101)
    const list = (perPage: number) => h.call('GET', `/api/v1/notifications?per_page=${perPage}`, { token })
    for (const perPage of [1, 100]) assert.equal((await list(perPage)).body.data.length, perPage)
    for (const perPage of [0, 101]) assertError(await list(perPage), 422, 'validation_failed', 'per_page')
  })
})

describe('Versioning', () => {
  test('"The version is carried in the path prefix `/api/v1`."', async () => {
    for (const version of ['', '/api', '/v1', '/api/v2']) {
      assertError(await h.call('GET', `${version}/game-levels`), 404, 'not_found')
    }
    assert.equal((await h.call('GET', '/api/v1/game-levels')).status, 200)
  })
})
