// Other applications in the same database: their queues, and tables, functions and channels with the names of ours.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { suite, type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { Logger, run, runMigrations } from 'graphile-worker'
import pg from 'pg'
import { PgBoss } from 'pg-boss'
import { migrate } from '../src/db/migrate.ts'
import { settingsFor } from './support/app.ts'
import { administer } from './support/database.ts'
import { openStream } from './support/event-stream.ts'
import { post, signUpByMail } from './support/load.ts'
import { courtside, type Service, startService } from './support/service.ts'
import { smtpServer } from './support/smtp.ts'
import { waitUntil } from './support/wait-until.ts'

const NAMES = ['session', 'migration', 'outbox', 'notification', 'app_user', 'event', 'game', 'throttle']
/** Courtside must not free running jobs of other applications. An earlier version freed them after 6 s. */
const JOB_MS = 8_000

/** Creates an empty database, a mail server, and functions that use them. A hook removes everything after the test. */
async function emptyDatabase(t: TestContext) {
  const name = `shared_${randomUUID().slice(0, 8)}`
  await administer(`create database ${name}`)
  const url = Object.assign(new URL(process.env.TEST_DATABASE_URL!), { pathname: `/${name}` }).href
  const pool = new pg.Pool({ connectionString: url })
  pool.on('error', () => {}).on('connect', client => client.on('error', () => {}))
  const smtp = await smtpServer()
  const stops: (() => Promise<unknown>)[] = []
  t.after(async () => {
    await Promise.all(stops.map(stop => stop()))
    await smtp.close()
    await pool.end()
    await administer(`drop database ${name} with (force)`)
  })
  const query = async (text: string, values: unknown[] = []) => (await pool.query(text, values)).rows
  const env = settingsFor(url, smtp.url)
  return {
    url,
    pool,
    query,
    env,
    stops,
    async start(settings: Record<string, string> = {}) {
      const service = await startService({ ...env, ...settings })
      stops.push(() => service.stop('SIGKILL'))
      return service
    },
    signUp: (service: Service, email: string) => signUpByMail([service], smtp, email),
    tables: async (schema: string) =>
      (await query('select tablename from pg_tables where schemaname = $1 order by 1', [schema])).map(
        row => row.tablename as string,
      ),
  }
}

type Shared = Awaited<ReturnType<typeof emptyDatabase>>

/** Installs an application with two queues, and with tables, functions and channels that have the names of ours. */
async function installNeighbour({ pool, query, url, stops }: Shared) {
  for (const name of NAMES) {
    await query(`create table public.${name} (theirs text); insert into public.${name} values ('${name}')`)
  }
  await query(`create function public.notification_fact_to_dedup_key() returns text language sql return 'theirs'`)
  await runMigrations({ pgPool: pool, logger: new Logger(() => () => {}) })
  const boss = new PgBoss({ connectionString: url })
  boss.on('error', () => {})
  await boss.start()
  await boss.createQueue('send_code')
  const ran: string[] = []
  const work = async (queue: string) => {
    ran.push(queue)
    await delay(JOB_MS)
  }
  const runner = await run({
    pgPool: pool,
    logger: new Logger(() => () => {}),
    noHandleSignals: true,
    taskList: { send_code: () => work('graphile-worker') },
  })
  await boss.work('send_code', () => work('pg-boss'))
  const heard: string[] = []
  const listener = await pool.connect()
  listener.on('notification', ({ channel }) => heard.push(channel))
  for (const channel of ['notification', 'outbox', 'session_ended']) await listener.query(`listen ${channel}`)
  stops.push(async () => {
    listener.release(true)
    await runner.stop()
    await boss.stop({ graceful: false })
  })
  return { boss, ran, heard, listener }
}

suite('neighbours in one database', { timeout: 600_000 }, () => {
  for (const order of ['first', 'second'] as const) {
    test(`beside an application with graphile-worker and pg-boss that is installed ${order}, both work undisturbed`, {
      timeout: 300_000,
    }, async t => {
      const shared = await emptyDatabase(t)
      const { query, signUp, tables } = shared
      let service = order === 'second' ? await shared.start() : undefined
      const { boss, ran, heard, listener } = await installNeighbour(shared)
      service ??= await shared.start()
      const theirs = await tables('public')
      await query(`select graphile_worker.add_job('send_code', json_build_object('code_id', gen_random_uuid()))`)
      await boss.send('send_code', { code_id: randomUUID() })
      const token = await signUp(service, 'zoe@example.com')
      const answer = await post([service], '/api/v1/auth/logout', {}, token)
      assert.equal(answer?.status, 200)
      await waitUntil(() => ran.length === 2)
      await delay(JOB_MS)
      await waitUntil(async () => (await query('select from graphile_worker._private_jobs')).length === 0)
      assert.deepEqual(ran.sort(), ['graphile-worker', 'pg-boss'])
      await listener.query('select 1')
      assert.deepEqual(heard, [])
      assert.deepEqual(await tables('public'), theirs)
      for (const name of NAMES) {
        assert.deepEqual(await query(`select * from public.${name}`), [{ theirs: name }], name)
        assert.ok((await tables('courtside')).includes(name), name)
      }
    })
  }

  test("installations with different schemas do not receive each other's NOTIFY messages", async t => {
    const shared = await emptyDatabase(t)
    const [one, two] = [
      await shared.start({ DATABASE_SCHEMA: 'club_one' }),
      await shared.start({ DATABASE_SCHEMA: 'club_two' }),
    ]
    const tokens = [await shared.signUp(one, 'zoe@example.com'), await shared.signUp(two, 'lea@example.com')] as const
    const streams = [await openStream(one.address, tokens[0]), await openStream(two.address, tokens[1])] as const
    for (const stream of streams) assert.equal((await stream.next()).event, 'sync')
    const add = (schema: string) =>
      shared.query(`insert into ${schema}.notification
        (user_id, type, title, message, dedup_key, locale, created_at, updated_at)
        values (1, 'game_full', 'T', 'M', gen_random_uuid()::text, 'fr', now(), now())`)
    // Both users have the id 1.
    assert.deepEqual(await shared.query('select id::int from club_one.app_user'), [{ id: 1 }])
    assert.deepEqual(await shared.query('select id::int from club_two.app_user'), [{ id: 1 }])
    for (const schema of ['club_one', 'club_two']) await add(schema)
    const read = await post([two], '/api/v1/notifications/read-all', {}, tokens[1])
    assert.equal(read?.status, 200)
    assert.equal((await streams[1].next()).data.is_read, true)
    const ended = await post([two], '/api/v1/auth/logout', {}, tokens[1])
    assert.equal(ended?.status, 200)
    await streams[1].ended()
    // If the hint had reached the other installation, its stream would already have sent its notification as unread.
    await post([one], '/api/v1/notifications/read-all', {}, tokens[0])
    assert.equal((await streams[0].next()).data.is_read, true)
    streams[0].close()
    assert.deepEqual(await shared.tables('courtside'), [])
  })

  test('an installation whose tables are in public keeps them, and another schema is a new installation', async t => {
    const shared = await emptyDatabase(t)
    await migrate(`${shared.url}?schema=public`)
    const service = await shared.start()
    await shared.signUp(service, 'zoe@example.com')
    assert.deepEqual(await shared.query('select email from public.app_user'), [{ email: 'zoe@example.com' }])
    assert.ok(service.lines.some(line => line.includes('using the tables of an earlier version in their schema')))
    const shown = await courtside(['users', 'show', 'zoe@example.com'], shared.env)
    assert.equal(shown.code, 0, shown.errors)
    assert.deepEqual(await shared.tables('courtside'), [])
    await shared.signUp(await shared.start({ DATABASE_SCHEMA: 'club' }), 'lea@example.com')
    assert.deepEqual(await shared.query('select email from club.app_user'), [{ email: 'lea@example.com' }])
  })
})
