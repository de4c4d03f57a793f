import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, cp, mkdtemp, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'
import pg from 'pg'
import { pino } from 'pino'
import { isAlive } from '../src/embedded/postmaster.ts'
import { findRunningEmbedded, startEmbedded } from '../src/embedded/server.ts'
import { startService } from './support/service.ts'

const log = pino({ level: 'silent' })

let template: string
let folder: string
let dataDir: string

// A data folder as a service left it, migrated; each test has a copy, unless it begins with none.
before(async () => {
  template = await mkdtemp(join(tmpdir(), 'courtside-embedded-'))
  await (await startService({ DATA_DIR: template })).stop()
})
after(() => rm(template, { recursive: true, force: true }))

beforeEach(async () => {
  // Below a folder closed to others, and deeper than a socket's path could be.
  folder = await mkdtemp(join(tmpdir(), 'courtside-embedded-'))
  await chmod(folder, 0o700)
  dataDir = join(folder, 'a-long-name-'.repeat(10), 'data')
})
afterEach(() => rm(folder, { recursive: true, force: true }))

async function ask(url: string, statement: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query(statement)
  await client.end()
  return rows
}

async function postmasterPid(): Promise<number> {
  return Number((await readFile(join(dataDir, 'postgres/postmaster.pid'), 'utf8')).split('\n')[0])
}

/** A service of its own process, killed without warning. @returns the process of the database it leaves behind */
async function killedService(): Promise<number> {
  const service = await startService({ DATA_DIR: dataDir })
  await service.stop('SIGKILL')
  return postmasterPid()
}

describe('the first start', () => {
  test('makes a database that keeps what was written, on loopback, with a password', async () => {
    const first = await startEmbedded(dataDir, log)
    await ask(first.url, 'create table kept as select 7 as value')
    const [settings] = await ask(
      first.url,
      `select current_setting('listen_addresses') as addresses, current_setting('fsync') as fsync,
        current_setting('server_version_num')::int / 10000 as version, lower('É') as lowered, current_database() as name`,
    )
    assert.deepEqual(settings, { addresses: '127.0.0.1', fsync: 'on', version: 18, lowered: 'é', name: 'courtside' })
    const stranger = Object.assign(new URL(first.url), { password: 'guessed' }).href
    await assert.rejects(ask(stranger, 'select'), { code: '28P01' })
    assert.equal(await findRunningEmbedded(dataDir), first.url)
    await first.stop()
    assert.equal(await findRunningEmbedded(dataDir), undefined)

    const second = await startEmbedded(dataDir, log)
    assert.deepEqual(await ask(second.url, 'select value from kept'), [{ value: 7 }])
    await second.stop()
    for (const name of ['postgres', 'postgres/courtside-password', 'postgres.log']) {
      assert.equal((await stat(join(dataDir, name))).mode & 0o077, 0, `${name} is open to others`)
    }
  })

  test('when broken off leaves nothing half done, and its remains go', async () => {
    const broken = spawn(process.execPath, [new URL('../bin/courtside.js', import.meta.url).pathname, 'serve'], {
      env: { PATH: process.env.PATH, DATA_DIR: dataDir, PORT: '0' },
      stdio: 'ignore',
      detached: true,
    })
    // As soon as initdb is at work, everything is killed.
    let draft: string | undefined
    while (!draft) {
      const names = await readdir(dataDir, { recursive: true }).catch(() => [])
      draft = names.find(name => /^postgres-draft-[^/]+\/cluster\/./.test(name))
      await new Promise(setImmediate)
    }
    process.kill(-broken.pid!, 'SIGKILL')
    await once(broken, 'exit')
    const started = await startEmbedded(dataDir, log)
    assert.deepEqual(await ask(started.url, 'select 1 as one'), [{ one: 1 }])
    await started.stop()
    assert.deepEqual(
      (await readdir(dataDir)).filter(name => name.includes('draft')),
      [],
    )
  })

  test('of several services at once makes one the owner', async () => {
    const starts = Array.from({ length: 4 }, () => startService({ DATA_DIR: dataDir }))
    const settled = await Promise.allSettled(starts)
    const started = settled.filter(outcome => outcome.status === 'fulfilled').map(outcome => outcome.value)
    const refusals = settled.filter(outcome => outcome.status === 'rejected').map(outcome => String(outcome.reason))
    assert.equal(started.length, 1, refusals.join('\n'))
    for (const refusal of refusals) assert.match(refusal, new RegExp(`in use by process ${started[0]!.process.pid}\\.`))
    assert.equal((await fetch(`${started[0]!.address}/readyz`)).status, 200)
    await started[0]!.stop()
  })
})

describe('a later start', () => {
  beforeEach(() => cp(template, dataDir, { recursive: true }))

  test('on the data of another PostgreSQL is refused plainly', async () => {
    await writeFile(join(dataDir, 'postgres/PG_VERSION'), '17\n')
    await assert.rejects(
      startService({ DATA_DIR: dataDir }),
      /PostgreSQL 17 wrote the data in .* This version of Courtside brings 18,/,
    )
  })

  test('beside a living owner is refused plainly, by any name of the folder, and the owner goes on', async () => {
    const service = await startService({ DATA_DIR: dataDir })
    const refusal = new RegExp(`is in use by process ${service.process.pid}\\.`)
    await symlink(dataDir, join(folder, 'link'))
    await assert.rejects(startEmbedded(dataDir, log), refusal)
    await assert.rejects(startEmbedded(join(folder, 'link'), log), refusal)
    assert.equal((await fetch(`${service.address}/readyz`)).status, 200)
    assert.equal(await service.stop(), 0)
  })

  test('beside an owner that lost its session for a moment is refused too', async () => {
    const owner = await startEmbedded(dataDir, log)
    const session = `select pid from pg_stat_activity where application_name like 'courtside-owner-%'`
    const [lost] = await ask(owner.url, `select pid, pg_terminate_backend(pid) from (${session}) as owner`)
    for (;;) {
      const [now] = await ask(owner.url, `${session} and pid in (select pid from pg_locks where locktype = 'advisory')`)
      if (now && now.pid !== lost!.pid) break
    }
    await assert.rejects(startEmbedded(dataDir, log), /in use by process/)
    await owner.stop()
  })

  test('that has taken a server about to end for a living one waits, and starts another', async () => {
    const owner = await startEmbedded(dataDir, log)
    const pid = await postmasterPid()
    // Frozen, it hears of its end only when the other start adopts it.
    process.kill(pid, 'SIGSTOP')
    process.kill(pid, 'SIGINT')
    const stopped = owner.stop()
    const thaw = (line: string) => line.includes('adopting') && process.kill(pid, 'SIGCONT')
    const next = await startEmbedded(dataDir, pino({}, { write: thaw }))
    await stopped
    assert.deepEqual(await ask(next.url, 'select 1 as one'), [{ one: 1 }])
    await next.stop()
  })

  test('adopts the cluster of a killed process, though the folder was moved', async () => {
    const pid = await killedService()
    const moved = join(folder, 'moved')
    await rename(dataDir, moved)
    dataDir = moved
    const adopted = await startEmbedded(dataDir, log)
    assert.equal(await postmasterPid(), pid)
    await adopted.stop()
    assert.equal(await isAlive(pid), false)
  })

  test('recovers after both were killed', async () => {
    process.kill(await killedService(), 'SIGKILL')
    const recovered = await startEmbedded(dataDir, log)
    assert.deepEqual(await ask(recovered.url, 'select count(*)::int as levels from game_level'), [{ levels: 8 }])
    await recovered.stop()
  })

  test('is not misled by another program, or the server of another folder, that has the old number', async () => {
    const neighbour = await startEmbedded(join(folder, 'neighbour'), log)
    const lock = await readFile(join(folder, 'neighbour/postgres/postmaster.pid'), 'utf8')
    const other = spawn('sleep', ['60'])
    for (const text of [lock, lock.replace(/^\d+/, String(other.pid))]) {
      await writeFile(join(dataDir, 'postgres/postmaster.pid'), text)
      assert.equal(await findRunningEmbedded(dataDir), undefined)
      const started = await startEmbedded(dataDir, log)
      assert.notEqual(started.url, neighbour.url)
      await started.stop()
    }
    assert.deepEqual(await ask(neighbour.url, 'select 1 as one'), [{ one: 1 }])
    assert.equal(other.exitCode, null)
    other.kill()
    await neighbour.stop()
  })

  test('empties a log that has grown, and keeps the one before', async () => {
    const path = join(dataDir, 'postgres.log')
    await writeFile(path, 'x'.repeat(6_000_000))
    const started = await startEmbedded(dataDir, log)
    await started.stop()
    assert.match(await readFile(path, 'utf8'), /^.{0,40}LOG: {2}starting PostgreSQL/)
    assert.equal((await stat(`${path}.1`)).size, 6_000_000)
  })
})

test('a Ctrl-C at the terminal reaches the service alone, which then stops its database in good order', async () => {
  await cp(template, dataDir, { recursive: true })
  const service = await startService({ DATA_DIR: dataDir })
  const pid = await postmasterPid()
  const group = (of: number) => execFileSync('ps', ['-o', 'pgid=', '-p', String(of)], { encoding: 'utf8' }).trim()
  assert.notEqual(group(pid), group(service.process.pid!))
  assert.equal(await service.stop('SIGINT'), 0)
  assert.equal(await isAlive(pid), false)
  assert.match(await readFile(join(dataDir, 'postgres.log'), 'utf8'), /database system is shut down\n$/)
})
