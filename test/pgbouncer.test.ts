import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { KEY_LOOKUPS } from '../src/db/connection-config.ts'
import { connect, connectReads, type Database, type Query } from '../src/db/sql.ts'
import { INTAKE_KEY, settingsFor } from './support/app.ts'
import { type TestDatabase, testDatabase } from './support/database.ts'
import { readCodeFrom, runJourney } from './support/journey.ts'
import { findFreePort, isInstalled } from './support/reverse-proxies.ts'
import { type Service, startService } from './support/service.ts'
import { type SmtpServer, smtpServer } from './support/smtp.ts'
import { waitUntil } from './support/wait-until.ts'

const SETTINGS = [
  ...['application_name', 'enable_seqscan', 'idle_in_transaction_session_timeout', 'plan_cache_mode'],
  'statement_timeout',
]

const skip = !process.env.CI && !isInstalled('pgbouncer') && 'pgbouncer is not installed (apt-get install pgbouncer)'

describe('a service behind PgBouncer in session mode', { skip }, () => {
  let database: TestDatabase
  let bouncer: Bouncer
  let smtp: SmtpServer
  let service: Service

  before(async () => {
    database = await testDatabase()
    bouncer = await startBouncer(new URL(database.url))
    smtp = await smtpServer()
    service = await startService(settingsFor(bouncer.url, smtp.url))
  })
  after(async () => {
    assert.equal(await service.stop(), 0)
    await smtp.close()
    await bouncer.stop()
    await database.drop()
  })

  test('the journey works', async () => {
    await runJourney(service, INTAKE_KEY, readCodeFrom(smtp))
  })

  test('connections have their time-outs, planner options and names, also on a reused server connection', async () => {
    const readSettings = async (sql: Pick<Database, 'close'> & Query) => {
      const rows = await sql<{ name: string; setting: string }>`
        select name, setting from pg_settings where name = any(${SETTINGS}) order by name`
      await sql.close()
      return Object.fromEntries(rows.map(({ name, setting }) => [name, setting]))
    }
    const timeouts = { idle_in_transaction_session_timeout: '60000', statement_timeout: '30000' }
    for (let round = 0; round < 3; round += 1) {
      assert.deepEqual(await readSettings(connect(bouncer.url, { name: 'a', planner: KEY_LOOKUPS })), {
        ...{ application_name: 'a', enable_seqscan: 'off', plan_cache_mode: 'force_generic_plan' },
        ...timeouts,
      })
      assert.deepEqual(await readSettings(connectReads(bouncer.url, { name: 'b' })), {
        ...{ application_name: 'b', enable_seqscan: 'on', plan_cache_mode: 'auto' },
        ...timeouts,
      })
    }
  })
})

type Bouncer = { url: string; stop(): Promise<void> }

/** Starts PgBouncer with the lines in docs/scaling.md, adapted to the test server. */
async function startBouncer(server: URL): Promise<Bouncer> {
  const folder = await mkdtemp(join(tmpdir(), 'courtside-pgbouncer-'))
  await chmod(folder, 0o755)
  const port = await findFreePort()
  const text = await readFile(new URL('../docs/scaling.md', import.meta.url), 'utf8')
  const shipped = /```ini\n(\[databases\]\n[\s\S]*?)```/.exec(text)![1]!
  const adapted = [
    ['host=db.internal port=5432', `host=${server.hostname} port=${server.port}`],
    ['courtside =', `${server.pathname.slice(1)} =`],
    ['dbname=courtside', `dbname=${server.pathname.slice(1)}`],
    ['listen_port = 6432', `listen_port = ${port}`],
    ['/etc/pgbouncer/userlist.txt', join(folder, 'userlist.txt')],
  ].reduce((changed, [from, to]) => {
    assert.ok(changed.includes(from!), `the lines in docs/scaling.md do not contain ${from}`)
    return changed.replace(from!, to!)
  }, shipped)
  const path = join(folder, 'pgbouncer.ini')
  await writeFile(path, `${adapted}\nunix_socket_dir =\n`)
  await writeFile(join(folder, 'userlist.txt'), `"${server.username}" "${server.password}"\n`)
  // PgBouncer refuses to run as root.
  const user = process.getuid!() === 0 ? ['-u', 'nobody'] : []
  const child = spawn('pgbouncer', [...user, path], { stdio: ['ignore', 'ignore', 'pipe'] })
  const log = readLog(child)
  const url = Object.assign(new URL(server), { hostname: '127.0.0.1', port: String(port) }).href
  await waitUntil(() => {
    if (child.exitCode !== null) throw new Error(`PgBouncer ended:\n${log()}`)
    return /process up/.test(log())
  })
  return {
    url,
    async stop() {
      child.kill('SIGTERM')
      await once(child, 'exit')
      await rm(folder, { recursive: true })
    },
  }
}

function readLog(child: ChildProcess): () => string {
  let log = ''
  child.stderr!.on('data', chunk => {
    log += chunk
  })
  return () => log
}
