import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, cp, mkdtemp, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { findRunningEmbedded, startEmbedded } from '../src/embedded/server.ts'
import { query } from './support/database.ts'
import { isAlive, readPostmasterPid, startService } from './support/service.ts'
import { waitUntil } from './support/wait-until.ts'

const log = pino({ level: 'silent' })

let template: string
let folder: string
let dataDir: string

// `template` is the data folder of a service that has migrated its database and stopped. Some tests copy this folder.
before(async () => {
  template = await mkdtemp(join(tmpdir(), 'courtside-embedded-'))
  await (await startService({ DATA_DIR: template })).stop()
})
after(() => rm(template, { recursive: true, force: true }))

beforeEach(async () => {
  // Other users cannot enter `folder`. The path of `dataDir` is too long for a Unix socket.
  folder = await mkdtemp(join(tmpdir(), 'courtside-embedded-'))
  await chmod(folder, 0o700)
  dataDir = join(folder, 'a-long-name-'.repeat(10), 'data')
})
afterEach(() => rm(folder, { recursive: true, force: true }))

/** Starts a service and kills it with SIGKILL. @returns the pid of its database server, which keeps running */
async function startAndKillService(): Promise<number> {
  const service = await startService({ DATA_DIR: dataDir })
  await service.stop('SIGKILL')
  return readPostmasterPid(dataDir)
}

describe('the first start', () => {
  test('the first start creates a database with a Unix socket and a password, and the data survives a restart', async () => {
    const first = await startEmbedded(dataDir, log)
    await query(first.url, 'create table kept as select 7 as value')
    const [settings] = await query(
      first.url,
      `select current_setting('listen_addresses') as addresses, current_setting('fsync') as fsync,
        current_setting('server_version_num')::int / 10000 as version,
        lower('É') as lowered, current_database() as name`,
    )
    assert.deepEqual(settings, { addresses: '', fsync: 'on', version: 18, lowered: 'é', name: 'courtside' })
    const stranger = first.url.replace(/:[^:@]+@/, ':guessed@')
    await assert.rejects(query(stranger, 'select'), { code: '28P01' })
    assert.equal(await findRunningEmbedded(dataDir), first.url)
    await first.stop()
    assert.equal(await findRunningEmbedded(dataDir), undefined)

    const second = await startEmbedded(dataDir, log)
    assert.deepEqual(await query(second.url, 'select value from kept'), [{ value: 7 }])
    await second.stop()
    for (const name of ['postgres', 'postgres/service-password', 'postgres.log', 'socket', 'owner.lock']) {
      assert.equal((await stat(join(dataDir, name))).mode & 0o077, 0, `${name} is open to others`)
    }
  })

  test('the service finds its embedded database although PGPORT and PGSSLMODE are set for another server', async () => {
    const service = await startService({ DATA_DIR: dataDir, PGPORT: '1', PGSSLMODE: 'require' })
    assert.equal((await fetch(`${service.address}/readyz`)).status, 200)
    assert.equal(await service.stop(), 0)
  })

  test('if the first start is killed, the next start works and removes the unfinished cluster', async () => {
    const killed = spawn(process.execPath, [new URL('../bin/courtside.js', import.meta.url).pathname, 'serve'], {
      env: { PATH: process.env.PATH, DATA_DIR: dataDir, PORT: '0' },
      stdio: 'ignore',
      detached: true,
    })
    // As soon as initdb has written a file of the cluster, the test kills the process group.
    await waitUntil(async () => {
      const names = await readdir(dataDir, { recursive: true }).catch(() => [])
      return names.some(name => /^postgres-draft-[^/]+\/cluster\/./.test(name))
    })
    process.kill(-killed.pid!, 'SIGKILL')
    await once(killed, 'exit')
    const started = await startEmbedded(dataDir, log)
    assert.deepEqual(await query(started.url, 'select 1 as one'), [{ one: 1 }])
    await started.stop()
    assert.deepEqual(
      (await readdir(dataDir)).filter(name => name.includes('draft')),
      [],
    )
  })

  test('if four services start together, one of them runs, and the errors of the other three name its pid', async () => {
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

  test('a start on the data of another PostgreSQL version fails with an error that names both versions', async () => {
    await writeFile(join(dataDir, 'postgres/PG_VERSION'), '17\n')
    await assert.rejects(
      startService({ DATA_DIR: dataDir }),
      /PostgreSQL 17 wrote the data in .* This version of Courtside brings 18,/,
    )
  })

  test('a second start in the same folder fails, even through a symlink, and the first service keeps running', async () => {
    const service = await startService({ DATA_DIR: dataDir })
    const refusal = new RegExp(`is in use by process ${service.process.pid}\\.`)
    await symlink(dataDir, join(folder, 'link'))
    await assert.rejects(startEmbedded(dataDir, log), refusal)
    await assert.rejects(startEmbedded(join(folder, 'link'), log), refusal)
    assert.equal((await fetch(`${service.address}/readyz`)).status, 200)
    assert.equal(await service.stop(), 0)
  })

  test('if the old service is shutting down, startEmbedded waits for its end and starts a new server', async () => {
    const owner = await startEmbedded(dataDir, log)
    const pid = await readPostmasterPid(dataDir)
    // SIGSTOP freezes the server, so it does not handle the signal of `stop` until SIGCONT.
    process.kill(pid, 'SIGSTOP')
    const stopped = owner.stop()
    const next = startEmbedded(dataDir, log)
    await delay(500)
    assert.equal(await readPostmasterPid(dataDir), pid)
    process.kill(pid, 'SIGCONT')
    await stopped
    const { url, stop } = await next
    assert.deepEqual(await query(url, 'select 1 as one'), [{ one: 1 }])
    await stop()
  })

  test('startEmbedded stops the database server that a killed service left running, even after the folder was moved', async () => {
    const pid = await startAndKillService()
    const moved = join(folder, 'moved')
    await rename(dataDir, moved)
    dataDir = moved
    const started = await startEmbedded(dataDir, log)
    assert.equal(isAlive(pid), false)
    assert.notEqual(await readPostmasterPid(dataDir), pid)
    assert.deepEqual(await query(started.url, 'select count(*)::int as levels from game_level'), [{ levels: 8 }])
    await started.stop()
  })

  test('startEmbedded recovers the data after the service and its database server were killed', async () => {
    process.kill(await startAndKillService(), 'SIGKILL')
    const recovered = await startEmbedded(dataDir, log)
    assert.deepEqual(await query(recovered.url, 'select count(*)::int as levels from game_level'), [{ levels: 8 }])
    await recovered.stop()
  })

  test('startEmbedded ignores a lock file whose pid belongs to another program or to the server of another folder', async () => {
    const neighbour = await startEmbedded(join(folder, 'neighbour'), log)
    const lock = await readFile(join(folder, 'neighbour/postgres/postmaster.pid'), 'utf8')
    const other = spawn('sleep', ['60'])
    for (const text of [lock, lock.replace(/^\d+/, String(other.pid))]) {
      await writeFile(join(dataDir, 'postgres/postmaster.pid'), text)
      assert.equal(await findRunningEmbedded(dataDir), undefined)
      const started = await startEmbedded(dataDir, log)
      assert.equal(await findRunningEmbedded(dataDir), started.url)
      await started.stop()
    }
    assert.deepEqual(await query(neighbour.url, 'select 1 as one'), [{ one: 1 }])
    assert.equal(other.exitCode, null)
    other.kill()
    await neighbour.stop()
  })

  test('if postgres.log is too large, the next start renames this file and creates a new file', async () => {
    const path = join(dataDir, 'postgres.log')
    await writeFile(path, 'x'.repeat(6_000_000))
    const started = await startEmbedded(dataDir, log)
    await started.stop()
    assert.match(await readFile(path, 'utf8'), /^.{0,40}LOG: {2}starting PostgreSQL/)
    assert.equal((await stat(`${path}.1`)).size, 6_000_000)
  })
})

test('only the service receives the signal of Ctrl-C in a terminal, and the service shuts its database down cleanly', async () => {
  await cp(template, dataDir, { recursive: true })
  const service = await startService({ DATA_DIR: dataDir })
  const pid = await readPostmasterPid(dataDir)
  const group = (of: number) => execFileSync('ps', ['-o', 'pgid=', '-p', String(of)], { encoding: 'utf8' }).trim()
  assert.notEqual(group(pid), group(service.process.pid!))
  assert.equal(await service.stop('SIGINT'), 0)
  assert.equal(isAlive(pid), false)
  assert.match(await readFile(join(dataDir, 'postgres.log'), 'utf8'), /database system is shut down\n$/)
})
