// Runs the service on a coordinator of Citus with two workers. `npm run test:citus` runs this file if CITUS_PG_BIN
// names the folder with the programs of a PostgreSQL that has Citus.
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { migrate } from '../../src/db/migrate.ts'
import { connect, type Database } from '../../src/db/sql.ts'
import { store } from '../../src/notifications/store.ts'
import { INTAKE_KEY, settingsFor } from '../support/app.ts'
import { type CitusCluster, startCitus } from '../support/citus.ts'
import { openStream } from '../support/event-stream.ts'
import { insertUser } from '../support/factories.ts'
import { cloudEvent, newGameId } from '../support/games.ts'
import { createClient, readCodeFrom, runJourney } from '../support/journey.ts'
import { post } from '../support/load.ts'
import { readPayload } from '../support/scenario.ts'
import { copyProgram, courtside, type Service, startService } from '../support/service.ts'
import { type SmtpServer, smtpServer } from '../support/smtp.ts'
import { waitUntil } from '../support/wait-until.ts'

const skip = !process.env.CITUS_PG_BIN && 'CITUS_PG_BIN names no PostgreSQL with Citus'
const USERS = 40
const DAY = 86_400_000

const MIGRATIONS = {
  '9998_next.sql': `alter table notification add column next text;
    alter table notification add constraint notification_next_check check (next <> '');
    create index notification_next on notification (user_id) where next is not null;`,
  '9999_next.sql': `-- Outside a transaction.
    drop index concurrently if exists notification_later;
    create index concurrently notification_later on notification (user_id, created_at);`,
}

let citus: CitusCluster
let sql: Database
let smtp: SmtpServer
let settings: Record<string, string>
let services: Service[] = []

before(async () => {
  if (skip) return
  citus = await startCitus()
  await migrate(citus.url)
  sql = connect(citus.url, { name: 'test' })
  smtp = await smtpServer()
  settings = {
    ...settingsFor(citus.url, smtp.url),
    ...{ THROTTLE_REQUEST_OTP: '1000000', THROTTLE_VERIFY_OTP: '1000000' },
    ...{ PUBLIC_URL: 'https://club.example', EMAIL_AFTER: '1s', EMAIL_AFTER_URGENT: '1s' },
  }
})
after(async () => {
  if (skip) return
  for (const service of services) await service.stop()
  await sql.close()
  await smtp.close()
  await citus.stop()
})

const runCommand = (...args: string[]) => courtside(args, settings)
const runJson = async (...args: string[]) => {
  const { code, output, errors } = await runCommand(...args, '--json')
  return { code, errors, ...JSON.parse(output) }
}
const count = async (userId?: number) => {
  const [row] = await sql<{ count: number }>`
    select count(*) from notification where ${userId ?? null}::bigint is null or user_id = ${userId ?? null}`
  return row!.count
}
const call = (method: string, path: string, options?: Parameters<ReturnType<typeof createClient>>[2]) =>
  createClient(services[0]!.address)(method, path, options)
const signUp = async (email: string) => {
  const body = { email, first_name: 'A', last_name: 'B', accept_cgu: true }
  assert.equal((await call('POST', '/api/v1/auth/request-otp', { body })).status, 200)
  const code = await readCodeFrom(smtp)(email)
  const token: string = (await call('POST', '/api/v1/auth/verify-otp', { body: { email, code } })).body.access_token
  return { id: Number(readPayload(token).sub), token, email }
}
const reportJoin = (game_id: number, ids: number[]) =>
  post(
    services,
    '/internal/v1/events',
    cloudEvent('game_joined', { game_id, creator_id: ids[0], player_ids: ids, actor_id: ids[1] }),
    INTAKE_KEY,
  )

/** Stores `each` notifications for each of 40 users. @returns the ids of the users */
async function fill(each: number, now: Date): Promise<number[]> {
  const users: number[] = []
  for (let index = 0; index < USERS; index += 1) {
    const email = `filled${now.getTime()}-${index}@example.com`
    users.push(await insertUser(sql, { email, firstName: 'A', lastName: 'B', locale: 'fr', now }))
  }
  const notifications = users.flatMap(userId =>
    Array.from({ length: each }, (_, index) => ({
      ...{ userId, dedupKey: `${now.getTime()} ${index}`, type: 'game_full', title: 't', message: 'm' },
      ...{ data: {}, locale: 'fr' as const, actorId: null, actorName: null },
    })),
  )
  await store(sql, notifications, now)
  return users
}

const options = { skip, timeout: 600_000 }

test(
  'distribute refuses while the service runs, shows what is missing, moves all rows, and can be repeated',
  options,
  async () => {
    await fill(5, new Date())
    const running = await startService(settings)
    const refused = await runCommand('distribute')
    assert.equal(refused.code, 1)
    assert.match(refused.errors, /the service has \d+ open connections\. Stop all its processes/)
    await running.stop()

    const missing = await runJson('distribute', '--check')
    assert.deepEqual([missing.code, missing.faults, missing.statements.length], [1, [], 5])
    const done = await runJson('distribute')
    assert.deepEqual([done.code, done.faults, done.statements, done.ran], [0, [], [], missing.statements])
    assert.match(done.errors, /"audit":"operator_command","command":"distribute","outcome":"done"/)
    for (const again of [await runJson('distribute'), await runJson('distribute', '--check')]) {
      assert.deepEqual([again.code, again.faults, again.statements], [0, [], []])
    }
    assert.equal(await count(), USERS * 5)
    const nodes = await sql<{ count: number }>`
    select count(*) from pg_dist_shard join pg_dist_placement using (shardid)
    where logicalrelid = 'notification'::regclass group by groupid`
    assert.deepEqual(
      nodes.map(node => node.count),
      [16, 16],
    )
    services = [await startService({ ...settings, ROLE: 'web' }), await startService(settings)]
  },
)

test('the journey works', options, async () => {
  await runJourney(services[0]!, INTAKE_KEY, readCodeFrom(smtp))
})

test('a notification that stays unread causes a mail, and no delivery stays in the outbox', options, async () => {
  const [anna, bob] = [await signUp('late-anna@example.com'), await signUp('late-bob@example.com')]
  // The test may run at night.
  await sql`insert into notification_preference (user_id, quiet_enabled, updated_at) values (${bob.id}, false, now())`
  const starts_at = new Date(Date.now() + 3 * 3_600_000).toISOString()
  const players = { creator_id: anna.id, player_ids: [anna.id, bob.id], actor_id: anna.id, starts_at }
  const event = cloudEvent('game_cancelled', { game_id: newGameId(), ...players }, { time: new Date().toISOString() })
  assert.equal((await post(services, '/internal/v1/events', event, INTAKE_KEY))!.status, 202)
  const findMail = () =>
    smtp.mails.find(({ to, parsed }) => to[0] === bob.email && /^Partie annulée/.test(parsed.subject!))
  await waitUntil(() => findMail() !== undefined)
  assert.match(findMail()!.parsed.text!, /A a annulé la partie/)
  await waitUntil(async () => (await sql`select id from outbox`).length === 0)
})

test('a stream receives what another process stores, and every route of the inbox works', options, async () => {
  const [anna, bob] = [await signUp('anna@example.com'), await signUp('bob@example.com')]
  const streams = await Promise.all(services.map(({ address }) => openStream(address, anna.token)))
  for (const stream of streams) assert.equal((await stream.next()).event, 'sync')
  const games = [newGameId(), newGameId(), newGameId()]
  for (const game of games) {
    assert.equal((await reportJoin(game, [anna.id, bob.id]))!.status, 202)
    for (const stream of streams) await waitUntil(async () => (await stream.next()).event === 'notification')
  }
  const list = async (query = '') =>
    (await call('GET', `/api/v1/notifications${query}`, { token: anna.token })).body.data as {
      id: number
      is_read: boolean
    }[]
  const [third, second, first] = await list()
  assert.equal((await list(`?before_id=${second!.id}`))[0]!.id, first!.id)
  const readAll = (body: unknown) => call('POST', '/api/v1/notifications/read-all', { token: anna.token, body })
  assert.equal((await call('POST', `/api/v1/notifications/${first!.id}/read`, { token: bob.token })).status, 403)
  assert.equal((await call('POST', '/api/v1/notifications/4611686018/read', { token: bob.token })).status, 404)
  assert.equal((await call('POST', `/api/v1/notifications/${first!.id}/read`, { token: anna.token })).status, 200)
  assert.equal((await readAll({ ids: [second!.id] })).status, 200)
  assert.deepEqual(
    (await list()).map(row => row.is_read),
    [false, true, true],
  )
  assert.equal((await readAll({})).status, 200)
  assert.equal((await call('DELETE', `/api/v1/notifications/${third!.id}`, { token: anna.token })).status, 200)
  const unread = await call('GET', '/api/v1/notifications/unread-count', { token: anna.token })
  assert.equal(unread.body.unread_count, 0)
  for (const stream of streams) {
    await waitUntil(async () => (await stream.next()).data.unread_count === 0)
    stream.close()
  }
})

test('the start of a game is announced once', options, async () => {
  const [clara, dave] = [await signUp('clara@example.com'), await signUp('dave@example.com')]
  const starts_at = new Date(Date.now() + 3_000).toISOString()
  const data = { game_id: newGameId(), creator_id: clara.id, player_ids: [clara.id, dave.id], starts_at }
  const time = new Date().toISOString()
  await post(services, '/internal/v1/events', cloudEvent('game_created', data, { time }), INTAKE_KEY)
  await waitUntil(async () => (await count(clara.id)) === 1 && (await count(dave.id)) === 1)
})

test('after a deletion, no notification of the account and no name of it is left', options, async () => {
  const [eve, finn] = [await signUp('eve@example.com'), await signUp('finn@example.com')]
  await reportJoin(newGameId(), [eve.id, finn.id])
  await reportJoin(newGameId(), [finn.id, eve.id])
  assert.deepEqual([await count(eve.id), await count(finn.id)], [1, 1])
  const exported = JSON.parse((await runCommand('users', 'export', eve.email)).output)
  assert.deepEqual([exported.notifications.received.length, exported.notifications.naming.length], [1, 1])
  assert.equal((await runCommand('users', 'delete', eve.email, '--yes')).code, 0)
  assert.deepEqual([await count(eve.id), await count(finn.id)], [0, 1])
  const [row] = await sql<{ message: string }>`select message from notification where user_id = ${finn.id}`
  assert.match(row!.message, /^Un joueur /)
})

test('prune deletes old notifications of every shard, and keeps the others', options, async () => {
  const before = await count()
  const old = await fill(3, new Date(Date.now() - 400 * DAY))
  assert.equal(await count(), before + USERS * 3)
  const pruned = await runJson('prune')
  assert.equal(pruned.notification, USERS * 3)
  assert.equal(await count(old[0]), 0)
  assert.equal(await count(), before)
})

test('the next version migrates the distributed table, and the previous version keeps working', options, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'courtside-next-'))
  await copyProgram(folder)
  for (const [name, text] of Object.entries(MIGRATIONS)) await writeFile(join(folder, 'migrations', name), text)
  const next = await startService(settings, folder)
  assert.equal((await fetch(`${next.address}/readyz`)).status, 200)
  services.push(next)
  const [gina, hugo] = [await signUp('gina@example.com'), await signUp('hugo@example.com')]
  for (const service of services) {
    const data = { game_id: newGameId(), creator_id: gina.id, player_ids: [gina.id, hugo.id], actor_id: hugo.id }
    const answer = await post([service], '/internal/v1/events', cloudEvent('game_joined', data), INTAKE_KEY)
    assert.equal(answer!.status, 202)
  }
  assert.equal(await count(gina.id), services.length)
  const indexes = await sql<{ name: string }>`
    select indexrelid::regclass::text as name from pg_index
    where indrelid = 'notification'::regclass and indisvalid and indexrelid::regclass::text ~ '_(next|later)$' order by 1`
  assert.deepEqual(
    indexes.map(({ name }) => name),
    ['notification_later', 'notification_next'],
  )
  await services.pop()!.stop()
  await rm(folder, { recursive: true })
})

test('while one worker is down, only the users on its shards get a 503', options, async () => {
  const people = []
  for (let index = 0; index < 12; index += 1) people.push(await signUp(`p${index}@example.com`))
  await citus.stopWorker(1)
  const read = async ({ token }: { token: string }) => (await call('GET', '/api/v1/notifications', { token })).status
  const statuses = []
  for (const person of people) statuses.push(await read(person))
  assert.deepEqual([...new Set(statuses)].sort(), [200, 503])
  assert.equal((await fetch(`${services[0]!.address}/readyz`)).status, 200)
  await signUp('late@example.com')
})
