import { createECDH, randomBytes } from 'node:crypto'
import { type Bench, median } from '../measure.ts'
import { administer } from '../postgres.ts'
import { type Program, startService } from '../programs.ts'
import { type PushSink, startPushSink } from '../push-sink.ts'
import { goalRow, type Part } from '../report.ts'
import { seedService } from '../seed.ts'

const USERS = 1_000
/** The number of unread notifications of each user. */
const UNREAD = 10

/**
 * Measures one worker that sends pushes to a push service on this machine, which answers immediately. Each push goes to
 * another browser than the push before it.
 */
export async function pushes(bench: Bench): Promise<Part> {
  const url = await bench.postgres.createMigrated('pushes')
  await seedService(url, { users: USERS, notifications: USERS * UNREAD, unread: true })
  const sink = await startPushSink()
  const privateKey = randomBytes(32).toString('base64url')
  await seedSubscriptions(url, sink, privateKey)
  const worker = await startService(url, {
    ROLE: 'worker',
    VAPID_PRIVATE_KEY: privateKey,
    VAPID_SUBJECT: 'mailto:bench@club.example',
    PUSH_HOSTS: sink.host,
    APP_URL: 'https://app.example',
  })
  try {
    const count = bench.smoke ? 20 : USERS * UNREAD
    // The first run is a warm-up.
    await measure(bench, { url, sink, worker }, count)
    if (bench.smoke) return { rows: [] }
    const runs = []
    for (let round = 0; round < bench.rounds; round += 1) runs.push(await measure(bench, { url, sink, worker }, count))
    const figures = {
      name: 'one worker',
      perSecond: median(runs.map(({ perSecond }) => perSecond)),
      cpu: median(runs.map(({ cpu }) => cpu)),
      databaseCpu: median(runs.map(({ databaseCpu }) => databaseCpu)),
      p50: Number.NaN,
      p99: Number.NaN,
      busy: Math.max(...runs.map(({ busy }) => busy)),
    }
    return {
      rows: [goalRow('pushes a second of one worker', figures.perSecond, { min: 500 })],
      comparisons: [{ work: 'pushes', figures: [figures] }],
    }
  } finally {
    await worker.stop()
    sink.close()
  }
}

type Subject = { url: string; sink: PushSink; worker: Program }

/** Queues pushes in one statement, and waits until the push service has received all of them. */
async function measure(bench: Bench, { url, sink, worker }: Subject, count: number) {
  sink.reset()
  const before = [await worker.cpuSeconds(), await bench.postgres.cpuSeconds()] as const
  const ownBefore = process.cpuUsage()
  await administer(
    url,
    `insert into outbox (channel, class, network, created_at, due, user_id, game_id, notification_id, subscription_id,
      deadline, payload)
    select 'push', 2, substr(sha256(user_id::text::bytea), 1, 16), now(), now(), user_id,
      (data ->> 'game_id')::bigint, notification.id, push_subscription.id, now() + interval '1 hour', '{}'
    from notification join push_subscription using (user_id) order by notification.id limit ${count}`,
  )
  await sink.waitFor(count)
  const used = [(await worker.cpuSeconds()) - before[0], (await bench.postgres.cpuSeconds()) - before[1]] as const
  const { firstAt, lastAt } = sink.received
  const own = process.cpuUsage(ownBefore)
  const perPush = (seconds: number) => (seconds / count) * 1e6
  return {
    perSecond: (count / (lastAt - firstAt)) * 1_000,
    cpu: perPush(used[0]),
    databaseCpu: perPush(used[1]),
    busy: (own.user + own.system) / 1e3 / (lastAt - firstAt),
  }
}

/** Gives each user a subscription, and turns quiet hours off. Moves the games into the future. */
async function seedSubscriptions(url: string, sink: PushSink, privateKey: string): Promise<void> {
  const pair = createECDH('prime256v1')
  pair.setPrivateKey(privateKey, 'base64url')
  const browsers = Array.from({ length: USERS }, (_, index) => {
    const p256dh = createECDH('prime256v1').generateKeys('base64url')
    return `(${index + 1}, '${p256dh}', '${randomBytes(16).toString('base64url')}')`
  })
  await administer(
    url,
    `insert into push_subscription (user_id, session_id, endpoint, p256dh, auth, public_key, created_at, confirmed_at)
    select id, md5('session ' || id)::uuid, 'http://${sink.host}/push/' || id, p256dh, auth,
      '${pair.getPublicKey('base64url')}', now(), now()
    from (values ${browsers.join()}) as browser (id, p256dh, auth)`,
  )
  await administer(
    url,
    `insert into notification_preference (user_id, quiet_enabled, updated_at) select id, false, now() from app_user`,
  )
  await administer(url, `update game set starts_at = now() + interval '2 days'`)
  await administer(url, 'vacuum analyze')
}
