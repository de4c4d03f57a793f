// Pushes of real processes of the service, to a push service of the tests.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { deriveKeys } from '../src/keys.ts'
import { createVapid } from '../src/reach/vapid.ts'
import { type Harness, JWT_SECRET, settingsFor } from './support/app.ts'
import { type TestDatabase, testDatabase } from './support/database.ts'
import { makePushable, type Pushable, queuePush } from './support/push.ts'
import { type PushService, pushService } from './support/push-service.ts'
import { type Service, startService } from './support/service.ts'
import { waitUntil } from './support/wait-until.ts'

const [OLD, NEW] = [1, 2].map(() => randomBytes(32).toString('base64url')) as [string, string]
const [OLD_PUBLIC, NEW_PUBLIC] = createVapid([OLD, NEW], '').publicKeys as [string, string]

let database: TestDatabase
let push: PushService
/** The parts of a harness that the factories need. */
let h: Harness

before(async () => {
  database = await testDatabase()
  const ctx = { now: () => new Date(), keys: deriveKeys([JWT_SECRET]), config: { sessionDays: 7 } }
  h = { ctx, database } as unknown as Harness
})
after(() => database.drop())

/** Starts a push service for each test, because a process that a test has stopped leaves rows in the outbox. */
function withPushService() {
  before(async () => {
    push = await pushService()
  })
  after(async () => {
    await push.close()
    await database.sql`delete from outbox`
  })
}

function start(vapidKeys: string, env: Record<string, string> = {}): Promise<Service> {
  return startService({
    ...settingsFor(database.url, 'smtp://127.0.0.1:1'),
    MAIL_FROM: 'Courtside <no-reply@club.example>',
    VAPID_PRIVATE_KEY: vapidKeys,
    PUSH_HOSTS: push.hosts,
    LINK_TEMPLATE: 'https://app.example/games/{game_id}',
    ...env,
  })
}

async function makeAwake(publicKey: string): Promise<Pushable> {
  const pushable = await makePushable(h, push, { publicKey })
  await database.sql`
    insert into notification_preference (user_id, quiet_enabled, updated_at) values (${pushable.userId}, false, now())`
  return pushable
}

const countRows = async () => (await database.sql`select from outbox where channel = 'push'`).length
const pathOf = ({ endpoint }: Pushable) => new URL(endpoint).pathname

describe('a logout', { timeout: 120_000 }, () => {
  withPushService()

  test('stops all pushes of its session: none leaves more than 5 s after the answer', async t => {
    const service = await start(OLD, { PUSH_CONCURRENCY: '2' })
    t.after(() => service.stop())
    const arrivals: number[] = []
    push.answer = async () => {
      arrivals.push(performance.now())
      await delay(100)
      return 201
    }
    const pushable = await makeAwake(OLD_PUBLIC)
    // At 20 pushes a second, these would leave for more than 10 s.
    await database.sql`
      insert into notification (user_id, type, title, message, data, dedup_key, locale, actor_name_length, created_at,
        updated_at)
      select user_id, type, title, message, data, dedup_key || ' ' || number, locale, 0, created_at, updated_at
      from notification cross join generate_series(1, 249) as number where user_id = ${pushable.userId}`
    await database.sql`
      insert into outbox (channel, class, network, created_at, due, user_id, game_id, notification_id, subscription_id,
        deadline, payload)
      select 'push', 2, 'x', now(), now(), user_id, ${pushable.gameId}, id, ${pushable.subscriptionId},
        now() + interval '1 hour', '{}'
      from notification where user_id = ${pushable.userId}`
    await waitUntil(() => arrivals.length >= 10, 60_000)
    const answer = await fetch(`${service.address}/api/v1/auth/logout`, {
      method: 'POST',
      headers: { authorization: `Bearer ${pushable.token}` },
    })
    assert.equal(answer.status, 200)
    const answeredAt = performance.now()
    await waitUntil(async () => (await countRows()) === 0, 60_000)
    assert.ok(arrivals.length < 250, 'the logout came after all pushes')
    const last = Math.max(...arrivals) - answeredAt
    assert.ok(last < 5_000, `a push arrived ${last} ms after the answer`)
    assert.deepEqual(push.faults, [])
    assert.equal((await database.sql`select from push_subscription where user_id = ${pushable.userId}`).length, 0)
  })
})

describe('a worker that is killed while it sends', { timeout: 180_000 }, () => {
  withPushService()

  test('loses no push, and each push arrives at most twice, with the same tag and topic', async t => {
    const first = await start(OLD, { PUSH_CONCURRENCY: '8' })
    t.after(() => first.stop('SIGKILL'))
    push.answer = async () => {
      await delay(200)
      return 201
    }
    const pushables: Pushable[] = []
    for (let count = 0; count < 40; count += 1) pushables.push(await makeAwake(OLD_PUBLIC))
    for (const pushable of pushables) await queuePush(database.sql, pushable, new Date())
    await waitUntil(() => push.pushes.length >= 8, 60_000)
    await first.stop('SIGKILL')
    const second = await start(OLD)
    t.after(() => second.stop())
    await waitUntil(async () => (await countRows()) === 0, 90_000)
    for (const pushable of pushables) {
      const arrived = push.pushes.filter(({ path }) => path === pathOf(pushable))
      assert.ok(arrived.length === 1 || arrived.length === 2, `${arrived.length} pushes`)
      const tags = arrived.map(({ message, headers }) => [message.notification.tag, headers.topic])
      for (const tag of tags) assert.deepEqual(tag, tags[0])
    }
    assert.deepEqual(push.faults, [])
  })
})

describe('rotation of VAPID_PRIVATE_KEY over two processes', { timeout: 240_000 }, () => {
  withPushService()

  async function readKey({ address }: Service): Promise<string> {
    const { data } = (await (await fetch(`${address}/api/v1/push/key`)).json()) as { data: { public_key: string } }
    return data.public_key
  }

  async function confirm({ address }: Service, { endpoint, token }: Pushable, publicKey: string): Promise<number> {
    const [row] = await database.sql`select p256dh, auth from push_subscription where endpoint = ${endpoint}`
    const answer = await fetch(`${address}/api/v1/push/subscriptions`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ endpoint, keys: row, public_key: publicKey }),
    })
    return answer.status
  }

  test('loses no push at any step, and each process accepts the keys that the other one gives out', async t => {
    const services: Service[] = []
    t.after(() => Promise.all(services.map(service => service.stop())))
    const old = await makeAwake(OLD_PUBLIC)
    let isReplaced = false
    for (const keys of [OLD, `${OLD},${NEW}`, `${NEW},${OLD}`, NEW]) {
      for (const index of [0, 1]) {
        await services[index]?.stop()
        services[index] = await start(keys)
        // Before the last step, every browser has subscribed with the new key.
        const pushables = keys === NEW ? [] : [old]
        for (const service of services) {
          const key = await readKey(service)
          const pushable = await makeAwake(key)
          for (const other of services) assert.equal(await confirm(other, pushable, key), 200)
          pushables.push(pushable)
          isReplaced ||= key === NEW_PUBLIC
        }
        const before = push.pushes.length
        for (const pushable of pushables) await queuePush(database.sql, pushable, new Date())
        await waitUntil(async () => (await countRows()) === 0, 60_000)
        const arrived = push.pushes.slice(before).map(({ path }) => path)
        assert.deepEqual(arrived.sort(), pushables.map(pathOf).sort(), keys)
        assert.deepEqual(push.faults, [])
      }
    }
    assert.ok(isReplaced)
  })
})
