import assert from 'node:assert/strict'
import type { LookupAddress } from 'node:dns'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { encrypt, readAuthSecret, readPublicKey } from '../src/reach/encryption.ts'
import { createPushClient, type PushRequest } from '../src/reach/push-client.ts'
import { createFindEndpoint, type Endpoint } from '../src/reach/push-hosts.ts'
import { createVapid } from '../src/reach/vapid.ts'
import { SETTINGS } from '../src/settings.ts'
import { PUSH_CERTIFICATE, pushService } from './support/push-service.ts'
import { waitUntil } from './support/wait-until.ts'

const VAPID = createVapid(['q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94'], 'mailto:admin@club.example')

setDefaultCACertificates([...getCACertificates('default'), PUSH_CERTIFICATE])

type Options = Parameters<typeof createPushClient>[0] & { secure?: boolean }

async function start(t: TestContext, { secure = false, ...options }: Options = {}) {
  const service = await pushService({ secure })
  const client = createPushClient(options)
  t.after(async () => {
    client.close()
    await service.close()
  })
  const find = createFindEndpoint(SETTINGS.PUSH_HOSTS.parse(service.hosts))
  const sent = service.subscribe()
  const request = (): PushRequest => ({
    headers: {
      Authorization: VAPID.authorize(VAPID.publicKeys[0]!, service.base, new Date())!,
      'Content-Encoding': 'aes128gcm',
      TTL: '60',
    },
    body: encrypt(Buffer.from('{"hello":"world"}'), {
      p256dh: readPublicKey(sent.keys.p256dh)!,
      auth: readAuthSecret(sent.keys.auth)!,
    }),
  })
  const endpoint = find(sent.endpoint)!
  return { service, client, endpoint, request, post: () => client.post(endpoint, async () => request()) }
}

/** Returns a resolver that knows one host only, with these addresses. */
function resolveTo(...addresses: string[]) {
  return ((_host: string, _options: object, callback: (error: null, found: LookupAddress[]) => void) => {
    callback(
      null,
      addresses.map(address => ({ address, family: address.includes(':') ? 6 : 4 })),
    )
  }) as never
}

for (const secure of [false, true]) {
  test(`a push arrives ${secure ? 'over TLS' : 'without TLS'}, and the next ones use the same connection`, async t => {
    const { service, post } = await start(t, { secure })
    for (let count = 0; count < 3; count += 1) assert.equal((await post())?.status, 201)
    assert.deepEqual(service.faults, [])
    assert.deepEqual(
      service.pushes.map(({ message }) => message),
      Array(3).fill({ hello: 'world' }),
    )
    assert.equal(service.connections, 1)
  })
}

test('a certificate that nobody has signed is refused', async t => {
  setDefaultCACertificates(getCACertificates('bundled'))
  t.after(() => setDefaultCACertificates([...getCACertificates('bundled'), PUSH_CERTIFICATE]))
  const { service, post } = await start(t, { secure: true })
  await assert.rejects(post(), /self-signed/)
  assert.equal(service.pushes.length, 0)
})

test('the request is made after the connection is open, and tells whether the connection is new', async t => {
  const { service, client, endpoint, request } = await start(t, { secure: true })
  const seen: [boolean, number][] = []
  for (let count = 0; count < 2; count += 1) {
    await client.post(endpoint, async ({ isNew }) => {
      seen.push([isNew, service.connections])
      return request()
    })
  }
  assert.deepEqual(seen, [
    [true, 1],
    [false, 1],
  ])
})

test('nothing is written if there is nothing to send any more', async t => {
  const { service, client, endpoint } = await start(t)
  assert.equal(await client.post(endpoint, async () => undefined), undefined)
  assert.equal(service.pushes.length + service.faults.length, 0)
  assert.equal(service.connections, 1)
})

test('a failure before the request is written reaches the caller', async t => {
  const { service, client, endpoint } = await start(t)
  const failing = client.post(endpoint, async () => {
    throw new Error('the database failed')
  })
  await assert.rejects(failing, /the database failed/)
  assert.equal(service.pushes.length + service.faults.length, 0)
})

describe('an answer', () => {
  for (const status of [201, 404, 410, 413, 429, 500, 403]) {
    test(`with the status ${status} is returned`, async t => {
      const { service, post } = await start(t)
      service.answer = () => ({ status, headers: { 'Retry-After': '120' } })
      assert.deepEqual(await post(), { status, retryAfter: '120' })
    })
  }

  test('that redirects is returned, and the client does not follow it', async t => {
    const { service, post } = await start(t)
    for (const status of [301, 302, 307, 308]) {
      service.answer = () => ({ status, headers: { Location: `${service.base}/push/elsewhere` } })
      assert.equal((await post())?.status, status)
    }
    assert.equal(service.pushes.length, 4)
    assert.deepEqual(service.faults, [])
  })

  test('with a body without end is closed after 1 KiB', async t => {
    const { service, post } = await start(t)
    service.answer = () => 'huge'
    assert.equal((await post())?.status, 201)
    service.answer = () => 201
    assert.equal((await post())?.status, 201)
    assert.equal(service.connections, 2)
  })

  test('with headers without end is no answer', async t => {
    const { service, post } = await start(t)
    service.answer = () => ({ status: 201, headers: { 'X-Long': 'x'.repeat(10_000) } })
    await assert.rejects(post(), /Header overflow/i)
  })

  test('of which nothing comes within the time limit is no answer', async t => {
    const { service, post } = await start(t, { timeoutMs: 300 })
    service.answer = () => 'hang'
    await assert.rejects(post(), /in time/)
  })

  test('that comes byte by byte has the same time limit', async t => {
    const { service, post } = await start(t, { timeoutMs: 500 })
    service.answer = () => 'slow'
    await assert.rejects(post(), /in time/)
  })

  test('of a connection that the service closes is no answer', async t => {
    const { service, post } = await start(t)
    service.answer = () => 'reset'
    await assert.rejects(post(), /hang up|ECONNRESET/)
  })
})

test('an answer that comes before the request is no answer, and nothing is written', async t => {
  let received = ''
  const server = createServer(socket => {
    socket
      .on('error', () => {})
      .on('data', chunk => {
        received += chunk
      })
    socket.write('HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { client, request } = await start(t)
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo
  const endpoint = { url: new URL(`http://127.0.0.1:${port}/push/1`), isLocal: true }
  const prepared = Promise.withResolvers<void>()
  const answer = client.post(endpoint, async () => {
    await delay(300)
    prepared.resolve()
    return request()
  })
  await assert.rejects(answer, /answered before the request/)
  await prepared.promise
  await delay(100)
  assert.equal(received, '')
})

test('the time limit covers the handshake and the work before the request', async t => {
  const { client, endpoint } = await start(t, { timeoutMs: 300 })
  await assert.rejects(
    client.post(endpoint, () => new Promise(() => {})),
    /in time/,
  )
  const silent = createServer(() => {}).listen(0, '127.0.0.1')
  t.after(() => silent.close())
  await waitUntil(() => silent.listening)
  const { port } = silent.address() as { port: number }
  const url = new URL(`https://127.0.0.1:${port}/x`)
  await assert.rejects(
    client.post({ url, isLocal: true }, async () => undefined),
    /in time/,
  )
})

describe('a host whose name resolves to', () => {
  for (const address of [
    '127.0.0.1',
    '::1',
    '10.0.0.1',
    '169.254.169.254',
    '100.64.0.1',
    'fd00::1',
    '::ffff:127.0.0.1',
  ]) {
    test(`${address} gets no connection`, async t => {
      const { service, client } = await start(t, { secure: true, resolve: resolveTo(address) })
      const url = new URL(`https://push.example:${service.port}/x`)
      await assert.rejects(
        client.post({ url, isLocal: false }, async () => undefined),
        /no address of the internet/,
      )
      assert.equal(service.connections, 0)
    })
  }

  test('a private and a public address gets a connection to the public one only', async t => {
    // The public address is one that no route reaches, so the connection fails there.
    const { service, client } = await start(t, {
      secure: true,
      timeoutMs: 1_000,
      resolve: resolveTo('127.0.0.1', '2a00:1450:ffff:ffff::1'),
    })
    const url = new URL(`https://push.example:${service.port}/x`)
    await assert.rejects(client.post({ url, isLocal: false }, async () => undefined))
    assert.equal(service.connections, 0)
  })

  test('an address of another machine gets no connection, if the endpoint is this machine', async t => {
    const { service, client } = await start(t, { resolve: resolveTo('10.0.0.1') })
    const url = new URL(`http://localhost:${service.port}/x`)
    await assert.rejects(
      client.post({ url, isLocal: true }, async () => undefined),
      /no address of the internet/,
    )
  })
})

test('the address of the connection counts, even if no name was resolved', async t => {
  const { service, client } = await start(t)
  // Node resolves no name here. Without the check of the socket, the connection would be used.
  const endpoint: Endpoint = { url: new URL(`http://127.0.0.1:${service.port}/x`), isLocal: false }
  let isPrepared = false
  await assert.rejects(
    client.post(endpoint, async () => {
      isPrepared = true
      return undefined
    }),
    /no address of the internet/,
  )
  assert.equal(isPrepared, false)
  assert.equal(service.pushes.length + service.faults.length, 0)
})
