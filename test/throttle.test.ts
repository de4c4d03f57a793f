import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { anotherApp, harness } from './support/app.ts'
import { newEmail } from './support/scenario.ts'
import { countStatements } from './support/statements.ts'
import { waitUntil } from './support/wait-until.ts'

const h = harness({ THROTTLE_REQUEST_OTP: '5', THROTTLE_VERIFY_OTP: '10', TRUST_PROXY: '10.0.0.0/8, fd00::/16' })

let addresses = 0

/** Returns the address of a client in a network that has sent no request yet. */
function newAddress(): string {
  addresses += 1
  return `198.18.${addresses}.7`
}

function requestCode(
  remoteAddress: string,
  headers: Record<string, string> = {},
  body: unknown = { email: newEmail() },
) {
  return h.call('POST', '/api/v1/auth/request-otp', { body, remoteAddress, headers })
}

describe('request-otp', () => {
  test('request-otp allows 5 requests in a minute, and answers the next request with 429 and rate-limit headers', async () => {
    const client = newAddress()
    for (let count = 1; count <= 5; count += 1) {
      const answer = await requestCode(client)
      assert.equal(answer.status, 200)
      assert.equal(answer.headers['x-ratelimit-limit'], '5')
      assert.equal(answer.headers['x-ratelimit-remaining'], String(5 - count))
      assert.equal(answer.headers.ratelimit, `"otp";r=${5 - count};t=${60 - (count - 1) * 10}`)
      assert.equal(answer.headers['ratelimit-policy'], '"otp";q=5;w=60')
      h.clock.advance(10_000)
    }
    const refused = await requestCode(client)
    assert.equal(refused.status, 429)
    assert.equal(refused.body.code, 'throttled')
    assert.equal(refused.headers['retry-after'], '10')
    assert.equal(refused.headers['x-ratelimit-reset'], String(h.clock.now().getTime() / 1000 + 10))
    assert.equal(refused.headers['x-ratelimit-remaining'], '0')
    h.clock.advance(10_000)
    assert.equal((await requestCode(client)).status, 200)
  })

  test('every request counts, regardless of its answer, and a 429 does not extend the throttle window', async () => {
    const client = newAddress()
    const bodies = ['{', { email: 'x' }, { email: newEmail() }, 'x'.repeat(70_000), {}]
    for (const body of bodies) await requestCode(client, {}, body)
    assert.equal((await requestCode(client)).status, 429)
    h.clock.advance(59_000)
    assert.equal((await requestCode(client)).status, 429)
    h.clock.advance(1_000)
    assert.equal((await requestCode(client)).status, 200)
  })

  test('a throttled request is refused before its body is read', async () => {
    const client = newAddress()
    for (let count = 0; count < 5; count += 1) await requestCode(client)
    assert.equal((await requestCode(client, { 'content-type': 'text/plain' }, 'x'.repeat(70_000))).status, 429)
  })
})

describe('verify-otp', () => {
  test('verify-otp allows 10 requests a minute, counted separately from request-otp', async () => {
    const client = newAddress()
    await requestCode(client)
    const body = { email: newEmail(), code: '1234' }
    for (let count = 1; count <= 10; count += 1) {
      const answer = await h.call('POST', '/api/v1/auth/verify-otp', { body, remoteAddress: client })
      assert.equal(answer.status, 422)
      assert.equal(answer.headers['x-ratelimit-remaining'], String(10 - count))
    }
    const refused = await h.call('POST', '/api/v1/auth/verify-otp', { body, remoteAddress: client })
    assert.equal(refused.status, 429)
  })
})

describe('the client for which the throttle counts a request', () => {
  async function readRemaining(remoteAddress: string, headers: Record<string, string> = {}): Promise<number> {
    return Number((await requestCode(remoteAddress, headers)).headers['x-ratelimit-remaining'])
  }

  test('all IPv6 addresses of one /64 network count as one client', async () => {
    assert.equal(await readRemaining('2001:db8:1:2::1'), 4)
    assert.equal(await readRemaining('2001:db8:1:2:ffff::9'), 3)
    assert.equal(await readRemaining('2001:db8:1:3::1'), 4)
  })

  test('an IPv4-mapped IPv6 address counts as the IPv4 address', async () => {
    const client = newAddress()
    assert.equal(await readRemaining(client), 4)
    assert.equal(await readRemaining(`::ffff:${client}`), 3)
  })

  test('behind a trusted proxy the client is the rightmost address that is not a trusted proxy', async () => {
    const client = newAddress()
    assert.equal(await readRemaining('10.1.2.3', { 'x-forwarded-for': `1.1.1.1, ${client}, 10.9.9.9` }), 4)
    assert.equal(await readRemaining('fd00::7', { 'x-forwarded-for': `2.2.2.2, ${client}` }), 3)
  })

  test('an address with a port, as some proxies write it, counts as the address without the port', async () => {
    const client = newAddress()
    assert.equal(await readRemaining('10.5.5.6', { 'x-forwarded-for': `${client}:41234` }), 4)
    assert.equal(await readRemaining('10.5.5.6', { 'x-forwarded-for': client }), 3)
    assert.equal(await readRemaining('10.5.5.6', { 'x-forwarded-for': '[2001:db8:77::1]:443' }), 4)
    assert.equal(await readRemaining('10.5.5.6', { 'x-forwarded-for': '[2001:db8:77::2]' }), 3)
  })

  test('the addresses of trusted proxies may have ports too', async () => {
    const hops = ['10.1.2.3:5000', '[fd00::1]:443', '[fd00::1]', '[::ffff:10.1.2.3]:80', '10.1.2.3:5000, 10.9.9.9:1']
    for (const hop of hops) {
      const client = newAddress()
      assert.equal(await readRemaining('10.1.2.3', { 'x-forwarded-for': `1.1.1.1, ${client}, ${hop}` }), 4, hop)
      assert.equal(await readRemaining('10.1.2.3', { 'x-forwarded-for': `${client}:99, ${hop}` }), 3, hop)
    }
    // An untrusted address with a port is not skipped, so a client cannot choose its own address.
    const client = newAddress()
    assert.equal(await readRemaining('10.1.2.3', { 'x-forwarded-for': `1.1.1.1, ${client}:5000` }), 4)
    assert.equal(await readRemaining('10.1.2.3', { 'x-forwarded-for': `2.2.2.2, ${client}:5001` }), 3)
  })

  test('behind NAT64, 6to4 and Teredo, each IPv4 client is counted by its IPv4 address', async () => {
    const toGroups = (parts: number[]) => {
      const [a, b, c, d] = parts.map(part => part.toString(16).padStart(2, '0'))
      return `${a}${b}:${c}${d}`
    }
    const readParts = (client: string) => client.split('.').map(Number)
    for (const wrap of [
      (client: string) => `64:ff9b::${client}`,
      (client: string) => `64:ff9b:1:2::${client}`,
      (client: string) => `::ffff:0:${client}`,
      (client: string) => `2002:${toGroups(readParts(client))}:77::1`,
      (client: string) => `2001:0:a00:1:8000:63bf:${toGroups(readParts(client).map(part => 255 - part))}`,
    ]) {
      const [client, neighbour] = [newAddress(), newAddress()]
      assert.equal(await readRemaining(client), 4)
      assert.equal(await readRemaining(wrap(client)), 3)
      assert.equal(await readRemaining('10.5.5.6', { 'x-forwarded-for': `[${wrap(client)}]:443` }), 2)
      assert.equal(await readRemaining(wrap(neighbour)), 4)
    }
  })

  test('a Teredo client does not become another client if it names another server and port', async () => {
    for (const [index, server] of ['a00:1', 'ff3:2', 'b7c:3', '1234:5678'].entries()) {
      const flagsAndPort = `${(index * 0x1111).toString(16)}:63b${index}`
      const address = `2001:0:${server}:${flagsAndPort}:8d8d:7272`
      assert.equal(await readRemaining(address), 4 - index, address)
    }
  })

  test('an address that contains the IPv4 address of a trusted proxy is no trusted proxy', async () => {
    assert.equal(await readRemaining('64:ff9b::10.77.0.1', { 'x-forwarded-for': '1.1.1.1' }), 4)
    assert.equal(await readRemaining('64:ff9b::10.77.0.1', { 'x-forwarded-for': '2.2.2.2' }), 3)
  })

  test('if a trusted proxy sends no valid address, the proxy itself is counted as the client', async () => {
    assert.equal(await readRemaining('10.5.5.5', { 'x-forwarded-for': 'rubbish' }), 4)
    assert.equal(await readRemaining('10.5.5.5', { 'x-forwarded-for': "'; drop table throttle" }), 3)
  })

  test('an X-Forwarded-For or Forwarded header from an untrusted peer is ignored, logged once a minute and reported by /readyz', async () => {
    const client = newAddress()
    h.clock.advance(60_000)
    const before = h.logged.length
    assert.equal(await readRemaining(client, { 'x-forwarded-for': '3.3.3.3' }), 4)
    assert.equal(await readRemaining(client, { forwarded: 'for=4.4.4.4' }), 3)
    assert.equal(h.logged.slice(before).filter(line => line.level === 50).length, 1)
    h.clock.advance(60_000)
    await requestCode(client, { 'x-forwarded-for': '3.3.3.3' })
    assert.equal(h.logged.slice(before).filter(line => line.level === 50).length, 2)
    const ready = await h.call('GET', '/readyz')
    assert.equal(ready.status, 200)
    assert.match(ready.body.warning, /^[^\d]*TRUST_PROXY$/)
  })
})

test('two processes share the counters of the throttle, because the counters are in the database', async () => {
  const client = newAddress()
  for (let count = 0; count < 5; count += 1) await requestCode(client)
  const other = await anotherApp(h, { THROTTLE_REQUEST_OTP: '5' })
  const body = { email: newEmail() }
  const answer = await other.call('POST', '/api/v1/auth/request-otp', { body, remoteAddress: client })
  assert.equal(answer.status, 429)
  await other.close()
})

test('of many concurrent requests, the service accepts only as many as the limit allows', async () => {
  for (let round = 0; round < 20; round += 1) {
    const client = newAddress()
    const answers = await Promise.all(Array.from({ length: 15 }, () => requestCode(client)))
    assert.equal(answers.filter(answer => answer.status === 200).length, 5)
  }
})

test('of 200 requests at once at two processes, the service accepts exactly as many as the limit allows', async () => {
  const other = await anotherApp(h, { THROTTLE_VERIFY_OTP: '10' })
  for (let round = 0; round < 5; round += 1) {
    const remoteAddress = newAddress()
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, index) =>
        (index % 2 === 0 ? h : other).call('POST', '/api/v1/auth/verify-otp', { body: {}, remoteAddress }),
      ),
    )
    const statuses = answers.map(({ status }) => status).toSorted()
    assert.deepEqual(statuses, [...Array(10).fill(422), ...Array(190).fill(429)])
  }
  await other.close()
})

test('a request is counted in one statement, and a process refuses further requests without a statement', async () => {
  const client = newAddress()
  const count = (status: number) =>
    countStatements(h.ctx, async () => assert.equal((await requestCode(client, {}, {})).status, status))
  for (let sent = 0; sent < 5; sent += 1) assert.equal(await count(422), 1)
  assert.equal(await count(429), 1)
  for (let sent = 0; sent < 5; sent += 1) assert.equal(await count(429), 0)
  h.clock.advance(60_000)
  assert.equal(await count(422), 1)
})

test('a request that waits too long for the lock of its counter gets 503', async () => {
  const client = newAddress()
  await requestCode(client)
  const answer = await h.database.sql.begin(async tx => {
    await tx`select key from throttle where key like 'request-otp:client:%' for update`
    const stuck = requestCode(client)
    // The test cancels the waiting statement immediately. Otherwise PostgreSQL would cancel the statement only after 30
    // s.
    await waitUntil(async () => {
      const cancelled = await h.database.sql`
        select pg_cancel_backend(pid) from pg_stat_activity
        where datname = current_database() and application_name = 'courtside' and wait_event_type = 'Lock'`
      return cancelled.length > 0
    })
    return stuck
  })
  assert.deepEqual([answer.status, answer.headers['retry-after']], [503, '5'])
})
