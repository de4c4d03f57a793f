import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { anotherApp, harness } from './support/app.ts'
import { makeUser } from './support/factories.ts'
import { renew } from './support/refreshes.ts'
import { newEmail, profile } from './support/scenario.ts'

const h = harness({ THROTTLE_REQUEST_OTP: '5', THROTTLE_VERIFY_OTP: '10', SHARED_NETWORKS: '203.0.113.0/24' })
const VERIFY = '/api/v1/auth/verify-otp'
const REQUEST = '/api/v1/auth/request-otp'

let networks = 0

/** Returns the first three groups of an IPv6 /48 network that has sent no request yet. */
function newNetwork(): string {
  networks += 1
  return `2001:db8:${networks.toString(16)}`
}

type Sent = { token?: string; headers?: Record<string, string>; body?: unknown; email?: string }

/** Sends a wrong code. By default, the body is valid, so the answer is a 422 `otp_invalid` or a 429. */
function guess(remoteAddress: string, { email = newEmail(), ...sent }: Sent = {}) {
  return h.call('POST', VERIFY, { body: { email, code: '0000' }, remoteAddress, ...sent })
}

async function useUp(remoteAddress: string, sent: Sent = {}): Promise<void> {
  for (let count = 0; count < 10; count += 1) assert.equal((await guess(remoteAddress, sent)).body.code, 'otp_invalid')
  assert.equal((await guess(remoteAddress, sent)).status, 429)
}

describe('the network of a client', () => {
  test('a /48 network may send 20 times the requests of one client, and another network is not affected', async () => {
    const network = newNetwork()
    let last: Awaited<ReturnType<typeof guess>> | undefined
    for (let count = 0; count < 200; count += 1) {
      last = await guess(`${network}:${(count % 40).toString(16)}::1`)
      assert.equal(last.body.code, 'otp_invalid', String(count))
      assert.equal(last.headers['x-ratelimit-limit'], '10')
      const [client, rest] = [9 - Math.floor(count / 40), 199 - count]
      assert.equal(last.headers['x-ratelimit-remaining'], String(Math.min(client, rest)))
      if (count === 100) h.clock.advance(10_000)
    }
    const refused = await guess(`${network}:ffff::1`)
    assert.deepEqual([refused.status, refused.body.code], [429, 'throttled'])
    assert.deepEqual([refused.headers['retry-after'], refused.headers['x-ratelimit-limit']], ['50', '10'])
    assert.equal((await guess(`${newNetwork()}:1::1`)).status, 422)
    h.clock.advance(50_000)
    assert.equal((await guess(`${network}:ffff::1`)).status, 422)
  })

  test('an IPv4 client belongs to its /24 network, and a refusal by the network does not count for the client', async () => {
    for (let count = 0; count < 200; count += 1) {
      assert.equal((await guess(`198.51.100.${100 + (count % 20)}`)).status, 422)
    }
    for (let count = 0; count < 10; count += 1) assert.equal((await guess('198.51.100.1')).status, 429)
    assert.equal((await guess('198.51.101.1')).status, 422)
    const rows = await h.database.sql<{ points: number }>`
      select points from throttle where key like 'verify-otp:client:%' and points < 1`
    assert.equal(rows.length, 1)
  })

  test('of many concurrent requests of one network, the service accepts only as many as the limit allows', async () => {
    for (let round = 0; round < 5; round += 1) {
      const network = newNetwork()
      const answers = await Promise.all(
        Array.from({ length: 130 }, (_, index) =>
          h.call('POST', REQUEST, { body: {}, remoteAddress: `${network}:${index.toString(16)}::1` }),
        ),
      )
      assert.equal(answers.filter(answer => answer.status === 422).length, 100)
    }
  })

  test('a request that the limit of its client refuses does not count for the network', async () => {
    const countForNetworks = async () => {
      const [row] = await h.database.sql<{ points: number }>`
        select coalesce(sum(points), 0)::integer as points from throttle where key like 'verify-otp:network:%'`
      return row!.points
    }
    const before = await countForNetworks()
    await useUp(`${newNetwork()}:1::1`)
    assert.equal((await countForNetworks()) - before, 10)
  })

  test('the table throttle contains no network address', async () => {
    await guess('192.0.2.55')
    await guess('2001:db8:aaaa:bbbb::1')
    const { email, token } = await makeUser(h)
    await guess('2001:db8:aaaa:bbbb::1', { email, token })
    const keys = (await h.database.sql<{ key: string }>`select key from throttle`).map(row => row.key)
    assert.ok(keys.length >= 5)
    for (const key of keys) assert.match(key, /^(request|verify)-otp:(client|network|session):[\w-]{22}$/)
    assert.ok(!keys.join().includes('192.0.2') && !keys.join().includes('db8:'))
  })

  test('a network in SHARED_NETWORKS has 20 times the limits', async () => {
    const first = await guess('203.0.113.9')
    assert.equal(first.headers['x-ratelimit-limit'], '200')
    assert.equal(first.headers['x-ratelimit-remaining'], '199')
    for (let count = 1; count < 200; count += 1) assert.equal((await guess('203.0.113.9')).status, 422)
    assert.equal((await guess('203.0.113.9')).status, 429)
    assert.equal((await guess('203.0.113.10')).status, 422)
  })
})

describe('a request with a token that the service signed', () => {
  test('a request of a known client counts for its session and network, regardless of its neighbours', async () => {
    const address = `${newNetwork()}:1::1`
    const { email, token } = await makeUser(h)
    await useUp(address)
    for (let count = 1; count <= 10; count += 1) {
      const answer = await guess(address, { token, email })
      assert.equal(answer.body.code, 'otp_invalid')
      assert.equal(answer.headers['x-ratelimit-remaining'], String(10 - count))
    }
    assert.equal((await guess(address, { token, email })).status, 429)
    const other = await anotherApp(h, { THROTTLE_VERIFY_OTP: '10' })
    const again = { token, body: { email, code: '0000' }, remoteAddress: address }
    assert.equal((await other.call('POST', VERIFY, again)).status, 429)
    await other.close()
    h.clock.advance(60_000)
    assert.equal((await h.call('POST', REQUEST, { token, body: { email }, remoteAddress: address })).status, 200)
  })

  test('a thief who uses an old token of the session from other networks stops no request of the owner', async () => {
    const address = `${newNetwork()}:1::1`
    const { email, token } = await makeUser(h)
    const newest = await renew(h, token)
    for (let network = 1; network <= 3; network += 1) await useUp(`${newNetwork()}:1::1`, { token, email })
    for (let count = 1; count <= 10; count += 1) {
      assert.equal((await guess(address, { token: newest, email })).body.code, 'otp_invalid')
    }
  })

  test('an expired token and a token of an ended session are counted by their session too', async () => {
    const address = `${newNetwork()}:1::1`
    const { email, token } = await makeUser(h)
    h.clock.advance(8 * 86_400_000)
    await useUp(address)
    assert.equal((await guess(address, { token, email })).body.code, 'otp_invalid')
  })

  test('a token of another account, and a forged token, are counted like no token', async () => {
    const address = `${newNetwork()}:1::1`
    const { token } = await makeUser(h)
    const { email } = await makeUser(h)
    await useUp(address)
    assert.equal((await guess(address, { token, email })).status, 429)
    assert.equal((await guess(address, { token: `${token.slice(0, -4)}AAAA`, email })).status, 429)
  })

  test('a request with a token gets its 413, 415 or 422 before the 429, and its 413 or 422 counts for the client', async () => {
    const address = `${newNetwork()}:1::1`
    const { email, token } = await makeUser(h)
    const faulty: [number, Sent][] = [
      [413, { body: 'x'.repeat(70_000) }],
      [422, { body: '{' }],
      [422, { body: { email: 'nobody', code: '0000' } }],
      [422, { body: { email } }],
      [415, { body: 'x', headers: { 'content-type': 'text/plain' } }],
    ]
    for (const [index, [status, sent]] of faulty.entries()) {
      const answer = await guess(address, { token, ...sent })
      assert.equal(answer.status, status)
      assert.equal(answer.headers['x-ratelimit-remaining'], String(10 - Math.min(index + 1, 4)), JSON.stringify(sent))
    }
    for (let count = 0; count < 6; count += 1) await guess(address)
    for (const [status, sent] of faulty) {
      const answer = await guess(address, { token, ...sent })
      assert.equal(answer.status, status)
      assert.equal(answer.headers['x-ratelimit-remaining'], '0')
    }
    assert.equal((await guess(address)).status, 429)
    assert.equal((await guess(address, { token, email })).status, 422)
  })
})

describe('a request that a page of a foreign origin can send', () => {
  test('requests that get a 415 do not count, not even many concurrent ones', async () => {
    const address = `${newNetwork()}:1::1`
    const send = () =>
      h.call('POST', REQUEST, {
        body: '{"email":"a@example.com"}',
        headers: { 'content-type': 'text/plain' },
        remoteAddress: address,
      })
    const answers = [...(await Promise.all(Array.from({ length: 20 }, send))), await send()]
    for (const answer of answers) {
      assert.equal(answer.status, 415)
      assert.deepEqual([answer.headers['x-ratelimit-limit'], answer.headers['x-ratelimit-remaining']], ['5', '5'])
    }
    for (let count = 0; count < 5; count += 1) {
      const answer = await h.call('POST', REQUEST, { body: profile(newEmail()), remoteAddress: address })
      assert.equal(answer.status, 200)
    }
    assert.equal((await send()).status, 429)
  })

  test('a compressed body gets a 415 and does not count', async () => {
    const answer = await h.call('POST', REQUEST, {
      body: profile(newEmail()),
      headers: { 'content-encoding': 'gzip' },
      remoteAddress: `${newNetwork()}:1::1`,
    })
    assert.deepEqual([answer.status, answer.headers['x-ratelimit-remaining']], [415, '5'])
  })

  test('a request with a large body that is no JSON, and an empty request from another site, do not count', async () => {
    const address = `${newNetwork()}:1::1`
    const large = await guess(address, { body: 'x'.repeat(70_000), headers: { 'content-type': 'text/plain' } })
    assert.deepEqual([large.status, large.headers['x-ratelimit-remaining']], [413, '10'])
    for (const site of ['cross-site', 'same-site']) {
      const headers = { 'content-type': '', 'sec-fetch-site': site }
      const answer = await guess(address, { body: '', headers })
      assert.deepEqual([answer.status, answer.headers['x-ratelimit-remaining']], [422, '10'])
    }
    const own = await guess(address, { body: '', headers: { 'content-type': '', 'sec-fetch-site': 'same-origin' } })
    assert.deepEqual([own.status, own.headers['x-ratelimit-remaining']], [422, '9'])
    const json = await guess(address, { body: 'x'.repeat(70_000) })
    assert.deepEqual([json.status, json.headers['x-ratelimit-remaining']], [413, '8'])
  })
})
