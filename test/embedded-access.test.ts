import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { pino } from 'pino'
import { migrate } from '../src/db/migrate.ts'
import { connect } from '../src/db/sql.ts'
import { asSuperuser, writeAccessRules } from '../src/embedded/access.ts'
import { findEmbeddedPrograms } from '../src/embedded/programs.ts'
import { findRunningEmbedded, startEmbedded } from '../src/embedded/server.ts'
import { query } from './support/database.ts'
import { findFreePort } from './support/reverse-proxies.ts'
import { courtside, readPostmasterPid, startService } from './support/service.ts'
import { waitUntil } from './support/wait-until.ts'

const log = pino({ level: 'silent' })

let folder: string
let dataDir: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'courtside-access-'))
  dataDir = join(folder, 'data')
})
// The tests add functions that stop what they have started. Hooks of a test would run after the removal of the folder.
const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp()
  await rm(folder, { recursive: true, force: true })
})

describe('the role of the service', () => {
  test('the role is no superuser and cannot run programs, and no process can connect as the superuser', async () => {
    const embedded = await startEmbedded(dataDir, log)
    cleanups.push(embedded.stop)
    await migrate(embedded.url)
    assert.deepEqual(await query(embedded.url, 'select rolname, rolsuper from pg_roles where rolname = current_user'), [
      { rolname: 'courtside_service', rolsuper: false },
    ])
    await assert.rejects(query(embedded.url, "copy (select 1) to program 'true'"), { code: '42501' })
    await assert.rejects(query(embedded.url, "copy (select 1) to '/tmp/courtside-never-written'"), { code: '42501' })
    const superuser = embedded.url.replace(/\/\/[^@]+@/, '//courtside@')
    await assert.rejects(query(superuser, 'select'), { code: '28000' })
    await assert.rejects(query(superuser.replace('/courtside?', '/postgres?'), 'select'), { code: '28000' })
  })

  test('only the user of the database can enter the folder of the socket', async () => {
    const embedded = await startEmbedded(dataDir, log)
    cleanups.push(embedded.stop)
    assert.equal((await stat(join(dataDir, 'socket'))).mode & 0o777, 0o700)
    assert.ok(existsSync(join(dataDir, 'socket/.s.PGSQL.5432')))
    // No program listens on a port, so a local user has nothing to connect to.
    assert.deepEqual(await query(embedded.url, 'select inet_server_addr() as address'), [{ address: null }])
  })
})

/**
 * Creates the data folder of an earlier version of Courtside, in which the service was the superuser. Runs the
 * programs as the earlier version did.
 * @returns the running server, and the URL that the earlier service used
 */
async function startEarlierServer(): Promise<{ postgres: ChildProcess; url: string }> {
  const bin = findEmbeddedPrograms()
  const namespace = ['unshare', '--user', '--map-user=65534', '--map-group=65534']
  const wrapper = process.getuid?.() === 0 ? namespace : []
  const [program, ...before] = [...wrapper, join(bin, 'initdb')]
  execFileSync('mkdir', ['--mode=700', dataDir])
  const [cluster, password] = [join(dataDir, 'postgres'), join(folder, 'password')]
  await writeFile(password, 'p'.repeat(43))
  execFileSync(program!, [
    ...[...before, '--pgdata', cluster, '--username', 'courtside', '--pwfile', password, '--auth', 'scram-sha-256'],
    ...['--encoding', 'UTF8', '--locale-provider', 'builtin', '--builtin-locale', 'C.UTF-8', '--locale', 'C'],
  ])
  await writeFile(join(cluster, 'courtside-password'), 'p'.repeat(43), { mode: 0o600 })
  const port = await findFreePort()
  const [server, ...args] = [...wrapper, join(bin, 'postgres'), '-D', cluster, '-p', String(port)]
  const postgres: ChildProcess = spawn(
    server!,
    [...args, '-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories='],
    { stdio: 'ignore' },
  )
  const url = `postgres://courtside:${'p'.repeat(43)}@127.0.0.1:${port}/courtside`
  const admin = url.replace(/courtside$/, 'postgres')
  while (!(await query(admin, 'create database courtside').catch(() => undefined))) await delay(20)
  // Earlier versions created their tables in the schema `public`.
  await migrate(`${url}?schema=public`)
  await query(
    url,
    `insert into app_user (email, first_name, last_name, locale, terms_version, terms_accepted_at, created_at, updated_at)
    values ('earlier@example.com', 'Earlier', 'User', 'fr', '1', now(), now(), now());
    create schema extra; create domain extra.word as text; create type extra.pair as (a int, b int);
    create sequence extra.alone; create view extra.names as select first_name from app_user;
    create table extra.child (id int generated always as identity, word extra.word);
    create function extra.one() returns int language sql return 1`,
  )
  return { postgres, url }
}

async function stopServer(postgres: ChildProcess): Promise<void> {
  postgres.kill('SIGINT')
  await once(postgres, 'exit')
}

test('the data folder of an earlier version is converted at the start: the new role owns everything', async () => {
  await stopServer((await startEarlierServer()).postgres)
  const service = await startService({ DATA_DIR: dataDir })
  cleanups.push(() => service.stop())
  assert.equal((await fetch(`${service.address}/readyz`)).status, 200)
  const shown = await courtside(['users', 'show', 'earlier@example.com'], { DATA_DIR: dataDir })
  assert.match(shown.output, /Earlier/, shown.errors)
  const url = (await findRunningEmbedded(dataDir))!
  const owners = `
    select 'relation' as kind, relowner::regrole::text as owner from pg_class where relnamespace in (table own)
    union select 'routine', proowner::regrole::text from pg_proc where pronamespace in (table own)
    union select 'type', typowner::regrole::text from pg_type where typnamespace in (table own)
    union select 'schema', nspowner::regrole::text from pg_namespace where oid in (table own) and nspname <> 'public'
    union select 'database', datdba::regrole::text from pg_database where datname = 'courtside'`
  const own = `with own as (select oid from pg_namespace where nspname !~ '^pg_' and nspname <> 'information_schema')`
  assert.deepEqual(
    (await query(url, `${own} ${owners} order by 1`)).map(row => `${row.kind} ${row.owner}`),
    ['database', 'relation', 'routine', 'schema', 'type'].map(kind => `${kind} courtside_service`),
  )
  // A later migration must be able to change every table.
  await query(url, 'alter table app_user add column later integer; drop schema extra cascade')
  assert.ok(!existsSync(join(dataDir, 'postgres/courtside-password')))
  const earlier = url.replace(/\/\/[^@]+@/, `//courtside:${'p'.repeat(43)}@`)
  await assert.rejects(query(earlier, 'select'), { code: '28000' })
  // The superuser of the earlier version had a password. It no longer works, whatever the access rules allow.
  const cluster = join(dataDir, 'postgres')
  await writeAccessRules(cluster, { superuser: true })
  process.kill(await readPostmasterPid(dataDir), 'SIGHUP')
  const readPassword = async () => {
    let stored: unknown[] = []
    await asSuperuser(cluster, 'postgres', async client => {
      stored = (await client.query(`select rolpassword from pg_authid where rolname = 'courtside'`)).rows
    })
    return stored
  }
  let stored: unknown[] | undefined
  await waitUntil(async () => {
    stored = await readPassword().catch(() => undefined)
    return stored !== undefined
  })
  assert.deepEqual(stored, [{ rolpassword: null }])
})

test('while a service of an earlier version runs, a start fails and does not change its database', async () => {
  const { postgres, url } = await startEarlierServer()
  // A service of the earlier version kept this connection open while it ran.
  const owner = new pg.Client({ connectionString: url, application_name: 'courtside-owner-4711' })
  await owner.connect()
  await assert.rejects(startEmbedded(dataDir, log), /is in use by process 4711\. Stop that process, or set another/)
  assert.deepEqual((await owner.query('select 1 as one')).rows, [{ one: 1 }])
  await owner.end()
  // Without its service, the server is a leftover, which the next start stops.
  const next = await startEmbedded(dataDir, log)
  assert.notEqual(postgres.exitCode, null)
  await next.stop()
})

/** The first message of a server that pretends to be PostgreSQL. */
const IMPOSTORS = {
  'asks for the password in clear text': Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 3]),
  'asks for the MD5 hash of the password': Buffer.from([0x52, 0, 0, 0, 12, 0, 0, 0, 5, 1, 2, 3, 4]),
  'asks for no password': Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0, 0x5a, 0, 0, 0, 5, 0x49]),
}

for (const [name, message] of Object.entries(IMPOSTORS)) {
  test(`a program in the place of the server that ${name} gets neither the password nor a statement`, async () => {
    const embedded = await startEmbedded(dataDir, log)
    const { password } = new URL(embedded.url.replace('@/', '@localhost/'))
    await embedded.stop()
    const received: Buffer[] = []
    const impostor = createServer(socket => {
      socket.on('data', data => received.push(data))
      socket.on('error', () => {})
      socket.write(message)
    })
    impostor.listen(join(dataDir, 'socket/.s.PGSQL.5432'))
    await once(impostor, 'listening')
    const sql = connect(embedded.url, { connections: 1, max: 1 })
    cleanups.push(async () => {
      await sql.close()
      impostor.close()
    })
    await assert.rejects(sql`select 'a private statement'`, { code: 'unavailable' })
    await assert.rejects(
      sql.begin(tx => tx`select 'a private statement'`),
      { code: 'unavailable' },
    )
    await delay(100)
    const bytes = Buffer.concat(received).toString('latin1')
    // The client has sent its start message, which contains the name of the role.
    assert.match(bytes, /courtside_service/)
    assert.doesNotMatch(bytes, /private statement/)
    assert.ok(password.length > 40 && !bytes.includes(password))
    // The letter p begins a message with a password or a hash. The start message has no letter before its length.
    assert.ok(received.every(data => data[0] !== 0x70))
  })
}

test('no argument of a process and no readable file contains the password', async () => {
  const service = await startService({ DATA_DIR: dataDir })
  cleanups.push(() => service.stop())
  const password = readFileSync(join(dataDir, 'postgres/service-password'), 'utf8')
  const commands = readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(pid => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      } catch {
        return ''
      }
    })
  assert.ok(commands.some(command => command.includes(join(dataDir, 'postgres'))))
  assert.ok(commands.every(command => !command.includes(password)))
  assert.equal((await stat(join(dataDir, 'postgres/service-password'))).mode & 0o077, 0)
})
