import assert from 'node:assert/strict'
import { createECDH, randomBytes } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { createTokens } from '../src/auth/jwt.ts'
import { type AnotherApp, anotherApp, harness, VAPID_KEY } from './support/app.ts'
import { makeUser } from './support/factories.ts'
import { newBrowserKeys, newSubscription } from './support/push.ts'
import { readPayload } from './support/scenario.ts'

const OLD_KEY = randomBytes(32).toString('base64url')
const [NEWEST, OLD] = [VAPID_KEY, OLD_KEY].map(toPublicKey) as [string, string]
const URL = '/api/v1/push/subscriptions'
const HOUR_MS = 3_600_000

const h = harness({ VAPID_PRIVATE_KEY: `${VAPID_KEY},${OLD_KEY}` })

function toPublicKey(privateKey: string): string {
  const pair = createECDH('prime256v1')
  pair.setPrivateKey(privateKey, 'base64url')
  return pair.getPublicKey('base64url')
}

const put = (token: string | undefined, body: unknown, app: Pick<AnotherApp, 'call'> = h) =>
  app.call('PUT', URL, { token, body })
const remove = (token: string | undefined, endpoint: string) => h.call('DELETE', URL, { token, body: { endpoint } })
const rowsOf = (userId: number) =>
  h.database.sql<Record<string, any>>`select * from push_subscription where user_id = ${userId} order by id`

test('everyone can read the newest public key', async () => {
  const { status, body } = await h.call('GET', '/api/v1/push/key')
  assert.deepEqual([status, body], [200, { data: { public_key: NEWEST } }])
})

describe('a process without a key', () => {
  let other: AnotherApp
  before(async () => {
    other = await anotherApp(h, { VAPID_PRIVATE_KEY: '' })
  })
  after(() => other.close())

  test('answers 404 to the requests for the key and to PUT, and still deletes', async () => {
    const { id, token } = await makeUser(h)
    const subscription = newSubscription()
    assert.equal((await put(token, subscription)).status, 200)
    assert.equal((await other.call('GET', '/api/v1/push/key')).status, 404)
    assert.equal((await put(token, newSubscription(), other)).status, 404)
    const { status } = await other.call('DELETE', URL, { token, body: { endpoint: subscription.endpoint } })
    assert.equal(status, 200)
    assert.equal((await rowsOf(id)).length, 0)
  })
})

describe('PUT', () => {
  test('stores what the browser sent, with the session and the newest key', async () => {
    const { id, token } = await makeUser(h)
    const subscription = newSubscription()
    const body = { ...subscription, expirationTime: null, time_zone: 'America/New_York' }
    const answer = await put(token, body)
    const [row, ...others] = await rowsOf(id)
    assert.deepEqual([answer.status, others.length], [200, 0])
    assert.deepEqual(answer.body, { data: { id: row!.id, created_at: '2026-11-28T10:00:00+00:00' } })
    assert.deepEqual(row, {
      id: row!.id,
      user_id: id,
      session_id: readPayload(token).sid,
      endpoint: subscription.endpoint,
      ...subscription.keys,
      public_key: NEWEST,
      time_zone: 'America/New_York',
      created_at: h.ctx.now(),
      confirmed_at: h.ctx.now(),
    })
  })

  test('of the same user keeps the id, and takes the session, the keys and the time', async () => {
    const user = await makeUser(h)
    const { endpoint, ...first } = newSubscription()
    const { body: before } = await put(user.token, { endpoint, ...first, time_zone: 'Asia/Tokyo' })
    h.clock.advance(HOUR_MS / 2)
    const keys = newBrowserKeys()
    const { body: after } = await put(user.token, { endpoint, keys, public_key: OLD })
    assert.deepEqual(after, before)
    const [row, ...others] = await rowsOf(user.id)
    assert.equal(others.length, 0)
    assert.deepEqual(
      [row!.p256dh, row!.auth, row!.public_key, row!.time_zone, row!.confirmed_at],
      [keys.p256dh, keys.auth, OLD, 'Asia/Tokyo', h.ctx.now()],
    )
  })

  test('of another user deletes the row and makes one with a new id', async () => {
    const [first, second] = [await makeUser(h), await makeUser(h)]
    const subscription = newSubscription()
    const { body: before } = await put(first.token, { ...subscription, public_key: OLD })
    const { body: after } = await put(second.token, subscription)
    assert.notEqual(after.data.id, before.data.id)
    assert.equal((await rowsOf(first.id)).length, 0)
    const [row] = await rowsOf(second.id)
    assert.deepEqual([row!.id, row!.public_key], [after.data.id, OLD])
  })

  test('without a key keeps the key of an earlier row of the same browser key only', async () => {
    const { id, token } = await makeUser(h)
    const { endpoint, keys } = newSubscription()
    await put(token, { endpoint, keys, public_key: OLD })
    await put(token, { endpoint, keys })
    assert.equal((await rowsOf(id))[0]!.public_key, OLD)
    await put(token, { endpoint, keys: newBrowserKeys() })
    assert.equal((await rowsOf(id))[0]!.public_key, NEWEST)
  })

  test('treats two spellings of an endpoint as one', async () => {
    const { id, token } = await makeUser(h)
    const { endpoint, keys } = newSubscription()
    await put(token, { endpoint, keys })
    await put(token, { endpoint: endpoint.replace('https://fcm', 'HTTPS://FCM').replace('.com/', '.com:443/'), keys })
    assert.equal((await rowsOf(id)).length, 1)
  })

  test('keeps the 10 subscriptions that were confirmed last', async () => {
    const { id, token } = await makeUser(h)
    const subscriptions = Array.from({ length: 11 }, () => newSubscription())
    for (const subscription of subscriptions.slice(0, 10)) {
      await put(token, subscription)
      h.clock.advance(1_000)
    }
    await put(token, subscriptions[0])
    h.clock.advance(1_000)
    await put(token, subscriptions[10])
    const kept = (await rowsOf(id)).map(({ endpoint }) => endpoint).sort()
    const expected = subscriptions.filter((_, index) => index !== 1).map(({ endpoint }) => endpoint)
    assert.deepEqual(kept, expected.sort())
  })

  const good = newSubscription()
  for (const [field, change] of [
    ['endpoint', { endpoint: undefined }],
    ['endpoint', { endpoint: 'https://push.example/x' }],
    ['endpoint', { endpoint: 'http://fcm.googleapis.com/x' }],
    ['endpoint', { endpoint: 'https://fcm.googleapis.com:8443/x' }],
    ['endpoint', { endpoint: 'https://127.0.0.1/x' }],
    ['endpoint', { endpoint: `https://fcm.googleapis.com/${'x'.repeat(2_000)}` }],
    ['endpoint', { endpoint: `https://fcm.googleapis.com/${'é'.repeat(1_900)}` }],
    ['endpoint', { endpoint: 7 }],
    ['keys', { keys: undefined }],
    ['keys.p256dh', { keys: { auth: good.keys.auth } }],
    ['keys.p256dh', { keys: { ...good.keys, p256dh: Buffer.alloc(65, 4).toString('base64url') } }],
    ['keys.auth', { keys: { p256dh: good.keys.p256dh } }],
    ['keys.auth', { keys: { ...good.keys, auth: 'short' } }],
    ['public_key', { public_key: newBrowserKeys().p256dh }],
    ['time_zone', { time_zone: 'Europe/Atlantis' }],
  ] as const) {
    test(`with ${JSON.stringify(change).slice(0, 60)} is a 422 that names ${field}`, async () => {
      const { id, token } = await makeUser(h)
      const { status, body } = await put(token, { ...good, ...change })
      assert.deepEqual([status, Object.keys(body.errors)], [422, [field]])
      assert.equal((await rowsOf(id)).length, 0)
    })
  }

  test('needs a token', async () => assert.equal((await put(undefined, newSubscription())).status, 401))

  test('that changes the time zone wakes waiting deliveries, and counts as a change of the preferences', async () => {
    const { id, token } = await makeUser(h)
    const later = new Date(h.ctx.now().getTime() + HOUR_MS)
    const { sql } = h.database
    await sql`
      insert into outbox (channel, class, network, created_at, due, ready, user_id, payload)
      values ('push', 2, 'x', ${h.ctx.now()}, ${later}, false, ${id}, '{}')`
    await sql`
      insert into waiting_mail (user_id, notification_id, urgent, created_at, look_at)
      values (${id}, 1, false, ${h.ctx.now()}, ${later})`
    const subscription = newSubscription()
    const isWoken = async () => {
      const [row] = await sql`
        select outbox.ready, look_at, coalesce(version, 0) as version
        from outbox join waiting_mail using (user_id) left join notification_preference using (user_id)
        where user_id = ${id}`
      return row
    }
    await put(token, { ...subscription, time_zone: 'Europe/Paris' })
    assert.deepEqual(await isWoken(), { ready: false, look_at: later, version: 0 })
    await put(token, { ...subscription, time_zone: 'Asia/Tokyo' })
    assert.deepEqual(await isWoken(), { ready: true, look_at: h.ctx.now(), version: 1 })
    await put(token, { ...subscription, time_zone: 'Asia/Tokyo' })
    await remove(token, subscription.endpoint)
    assert.equal((await isWoken())!.version, 2)
  })
})

describe('DELETE', () => {
  test('deletes the row of the user', async () => {
    const { id, token } = await makeUser(h)
    const subscription = newSubscription()
    await put(token, subscription)
    const { status, body } = await remove(token, subscription.endpoint)
    assert.deepEqual([status, typeof body.message], [200, 'string'])
    assert.equal((await rowsOf(id)).length, 0)
  })

  test("answers the same to another user's endpoint, an unknown one and no endpoint of ours", async () => {
    const [owner, other] = [await makeUser(h), await makeUser(h)]
    const subscription = newSubscription()
    await put(owner.token, subscription)
    const endpoints = [subscription.endpoint, newSubscription().endpoint, 'https://push.example/x', 'not a URL']
    const answers = await Promise.all(endpoints.map(endpoint => remove(other.token, endpoint)))
    for (const { status, text } of answers) assert.deepEqual([status, text], [200, answers[0]!.text])
    assert.equal((await rowsOf(owner.id)).length, 1)
  })

  test('accepts an expired token, a superseded token, and a token after the natural end of its session', async () => {
    const { id, token } = await makeUser(h)
    const names = ['expired', 'superseded', 'past the end'].map(() => newSubscription())
    for (const subscription of names) await put(token, subscription)
    const { body } = await h.call('POST', '/api/v1/auth/refresh', { token })
    h.clock.advance(2 * HOUR_MS)
    assert.equal((await h.call('GET', '/api/v1/auth/me', { token })).status, 401)
    assert.equal((await remove(body.access_token, names[0]!.endpoint)).status, 200)
    assert.equal((await remove(token, names[1]!.endpoint)).status, 200)
    h.clock.advance(8 * 24 * HOUR_MS)
    assert.equal((await remove(token, names[2]!.endpoint)).status, 200)
    assert.equal((await rowsOf(id)).length, 0)
  })

  test('never counts as theft: the newest token still works after a DELETE with a superseded one', async () => {
    const { token } = await makeUser(h)
    const { body } = await h.call('POST', '/api/v1/auth/refresh', { token })
    const newest = body.access_token
    assert.equal((await h.call('GET', '/api/v1/auth/me', { token: newest })).status, 200)
    h.clock.advance(120_000)
    assert.equal((await remove(token, newSubscription().endpoint)).status, 200)
    assert.equal((await h.call('GET', '/api/v1/auth/me', { token: newest })).status, 200)
  })

  test('refuses a token whose session was ended by a logout', async () => {
    const { id, token } = await makeUser(h)
    const subscription = newSubscription()
    await put(token, subscription)
    await h.call('POST', '/api/v1/auth/logout', { token })
    assert.equal((await remove(token, subscription.endpoint)).status, 401)
    assert.equal((await rowsOf(id)).length, 1)
  })

  test('refuses a token that we did not sign, and no token', async () => {
    const { id, token } = await makeUser(h)
    const forged = createTokens({ ...h.ctx.keys, signing: [{ ...h.ctx.keys.signing[0]!, secret: 'x'.repeat(32) }] })
    const payload = readPayload(token)
    const claims = { sub: id, sid: payload.sid, generation: 1, iat: payload.iat, nbf: payload.iat, exp: payload.exp }
    for (const sent of [forged.sign(claims), `${token}x`, undefined]) {
      assert.equal((await remove(sent, newSubscription().endpoint)).status, 401)
    }
  })

  test('without an endpoint is a 422', async () => {
    const { token } = await makeUser(h)
    const { status, body } = await h.call('DELETE', URL, { token, body: {} })
    assert.deepEqual([status, Object.keys(body.errors)], [422, ['endpoint']])
  })
})
