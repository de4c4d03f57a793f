import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, cp, mkdir, mkdtemp, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { runProgram } from '../src/embedded/programs.ts'
import { startEmbedded } from '../src/embedded/server.ts'
import { query } from './support/database.ts'
import { courtside, isAlive, readPostmasterPid, startService } from './support/service.ts'
import { findSkipReason, UNPRIVILEGED_UID } from './support/unprivileged-user.ts'
import { waitUntil } from './support/wait-until.ts'

const log = pino({ level: 'silent' })
const BIN = new URL('../bin/courtside.js', import.meta.url).pathname

let template: string
let folder: string
let dataDir: string
// `template` is the data folder of a service that has migrated its database and stopped.
before(async () => {
  template = await mkdtemp(join(tmpdir(), 'courtside-faults-'))
  await (await startService({ DATA_DIR: template })).stop()
})
after(() => rm(template, { recursive: true, force: true }))
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'courtside-faults-'))
  dataDir = join(folder, 'data')
})
// The tests add functions that stop what they have started. Hooks of a test would run after the removal of the folder.
const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp()
  await rm(folder, { recursive: true, force: true })
})

const copyTemplate = () => cp(template, dataDir, { recursive: true })

/** Starts the embedded database, reads the number of levels from it, and stops it. */
async function countLevels(): Promise<number> {
  const embedded = await startEmbedded(dataDir, log)
  try {
    const [row] = await query(embedded.url, 'select count(*)::int as levels from game_level')
    return row!.levels as number
  } finally {
    await embedded.stop()
  }
}

describe('a start that repairs a fault itself', () => {
  beforeEach(copyTemplate)

  for (const text of ['', '\n', '1', '99999999\n/nowhere\n', 'no number\n']) {
    test(`a start succeeds after a crash that left the postmaster.pid ${JSON.stringify(text)}`, async () => {
      await writeFile(join(dataDir, 'postgres/postmaster.pid'), text)
      assert.equal(await countLevels(), 8)
    })
  }

  for (const [name, damage] of Object.entries({
    'is missing': (path: string) => rm(path),
    'is empty': (path: string) => truncate(path),
    'is cut': (path: string) => truncate(path, 20),
  })) {
    test(`a start succeeds if the file with the password ${name}`, async () => {
      const path = join(dataDir, 'postgres/service-password')
      const password = await readFile(path, 'utf8')
      await damage(path)
      assert.equal(await countLevels(), 8)
      const next = await readFile(path, 'utf8')
      assert.ok(next.length === password.length && next !== password)
      assert.equal(await countLevels(), 8)
    })
  }

  for (const mode of [0o2770, 0o755, 0o777, 0o500]) {
    test(`a start succeeds if the folder of the cluster has the mode ${mode.toString(8)}`, async () => {
      await chmod(join(dataDir, 'postgres'), mode)
      assert.equal(await countLevels(), 8)
      assert.equal((await stat(join(dataDir, 'postgres'))).mode & 0o7777, 0o700)
    })
  }

  test('a start succeeds if the path of the data folder looks like options of PostgreSQL', async () => {
    dataDir = join(folder, 'a -p 1 -D b', 'data')
    await copyTemplate()
    const service = await startService({ DATA_DIR: dataDir })
    await service.stop('SIGKILL')
    assert.equal(await countLevels(), 8)
  })

  test('a start succeeds if PostgreSQL died in the middle of the preparation of its role', async () => {
    // The access rules still let the superuser in, and there is no password yet.
    await rm(join(dataDir, 'postgres/service-password'))
    const path = join(dataDir, 'postgres/pg_hba.conf')
    await writeFile(path, `${await readFile(path, 'utf8')}local all courtside trust\n`)
    assert.equal(await countLevels(), 8)
    assert.doesNotMatch(await readFile(path, 'utf8'), /trust/)
  })
})

describe('an error that names DATA_DIR or the path', () => {
  async function refusal(settings: Record<string, string> = {}): Promise<string> {
    return startService({ DATA_DIR: dataDir, ...settings }).then(
      async service => `started, and stopped with ${await service.stop()}`,
      error => String(error),
    )
  }

  test('if DATA_DIR is a file, or leads through a file, the error names DATA_DIR', async () => {
    await writeFile(dataDir, '')
    assert.match(await refusal(), /DATA_DIR: .*data is a file\. Set DATA_DIR to a folder\./)
    assert.match(await refusal({ DATA_DIR: join(dataDir, 'inside') }), /DATA_DIR: the path .* leads through a file\./)
  })

  test('if DATA_DIR cannot be written, the error names DATA_DIR', { skip: findSkipReason() }, () => {
    const started = spawnSync(process.execPath, [BIN, 'serve'], {
      env: { PATH: process.env.PATH, DATA_DIR: '/var/courtside-data', PORT: '0' },
      uid: UNPRIVILEGED_UID,
      gid: UNPRIVILEGED_UID,
      encoding: 'utf8',
    })
    assert.equal(started.status, 1)
    assert.match(started.stderr, /DATA_DIR: the user id 65534 may not write to \/var\/courtside-data\./)
  })

  test('if the path of the cluster is a file, or the path of the password is a folder, the error names the path', async () => {
    await copyTemplate()
    await rm(join(dataDir, 'postgres/service-password'))
    await mkdir(join(dataDir, 'postgres/service-password'))
    assert.match(await refusal(), /postgres\/service-password is a folder\. Delete it\./)
    await rm(join(dataDir, 'postgres'), { recursive: true })
    await writeFile(join(dataDir, 'postgres'), '')
    assert.match(await refusal(), /data\/postgres is a file\. It must be the folder of the database\./)
  })

  test('if other users can write to DATA_DIR, root refuses it, and another user gets a warning', async () => {
    await copyTemplate()
    await chmod(dataDir, 0o777)
    const sentence = `users other than the owner may write to ${dataDir}. Run: chmod go-w ${dataDir}`
    if (process.getuid?.() === 0) return assert.ok((await refusal()).includes(sentence))
    const service = await startService({ DATA_DIR: dataDir })
    cleanups.push(() => service.stop())
    assert.ok(service.lines.some(line => line.includes(sentence)))
  })

  test('if PostgreSQL does not start, the error contains the reason from its log', async () => {
    await copyTemplate()
    await writeFile(join(dataDir, 'postgres/postgresql.conf'), 'max_wal_senders = nonsense\n')
    assert.match(await refusal(), /does not start: configuration file .* contains errors\. See .*postgres\.log/)
  })
})

test('a command creates no database by itself, but migrate does', async () => {
  for (const command of [['levels', 'list'], ['prune'], ['users', 'show', 'a@example.com']]) {
    const { code, errors } = await courtside(command, { DATA_DIR: dataDir })
    assert.equal(code, 1)
    assert.match(errors, /^DATA_DIR: there is no database in .*data yet\. Start the service, or run "npm run courtside/)
    assert.ok(!existsSync(dataDir))
  }
  await (await startEmbedded(dataDir, log)).stop()
  const unmigrated = await courtside(['levels', 'list'], { DATA_DIR: dataDir })
  assert.equal(unmigrated.code, 1)
  assert.match(
    unmigrated.errors,
    /^The database is not migrated yet\. Start the service, or run "npm run courtside -- mig/,
  )
  assert.equal((await courtside(['migrate'], { DATA_DIR: dataDir })).code, 0)
  assert.equal((await courtside(['levels', 'list'], { DATA_DIR: dataDir })).code, 0)
})

describe('a signal to a command', () => {
  beforeEach(copyTemplate)
  const TERMINAL = 'import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))'

  /** Starts a command in a terminal. */
  function start(args: string[]) {
    const command = spawn('python3', ['-c', TERMINAL, process.execPath, BIN, ...args], {
      env: { PATH: process.env.PATH, DATA_DIR: dataDir },
    })
    cleanups.push(() => command.kill('SIGKILL'))
    return command
  }

  /** Sends a signal to a command. @returns the exit code, after a check that the command has left nothing running */
  async function interrupt(command: ReturnType<typeof start>, signal: NodeJS.Signals) {
    process.kill(JSON.parse(await readFile(join(dataDir, 'owner.json'), 'utf8')).pid, signal)
    const [code] = await once(command, 'exit')
    const running = execFileSync('ps', ['-e', '-o', 'args'], { encoding: 'utf8' })
    assert.ok(!running.includes(join(dataDir, 'postgres')), running)
    assert.ok(!existsSync(join(dataDir, 'owner.json')))
    return code
  }

  for (const [signal, expected] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const) {
    test(`${signal} to a command that starts its PostgreSQL ends both, and the exit code is ${expected}`, async () => {
      const command = start(['prune'])
      await waitUntil(() => existsSync(join(dataDir, 'postgres/postmaster.pid')))
      assert.equal(await interrupt(command, signal), expected)
    })
  }

  test('a second command fails with the pid of the waiting command, which SIGTERM ends with its PostgreSQL', async () => {
    const embedded = await startEmbedded(dataDir, log)
    await query(
      embedded.url,
      `insert into app_user (email, first_name, last_name, locale, terms_version, terms_accepted_at, created_at, updated_at)
      values ('marie@example.com', 'M', 'D', 'fr', '1', now(), now(), now())`,
    )
    await embedded.stop()
    const command = start(['users', 'delete', 'marie@example.com'])
    // The text may arrive in several chunks.
    let output = ''
    for await (const chunk of command.stdout) {
      output += chunk
      if (output.includes('Type yes')) break
    }
    // Another command waits 10 s for the first one.
    const second = await courtside(['levels', 'list'], { DATA_DIR: dataDir })
    assert.equal(second.code, 1)
    assert.match(second.errors, /is in use by process \d+\. Stop that process, or set another DATA_DIR\.\n$/)
    assert.equal(await interrupt(command, 'SIGTERM'), 143)
  })
})

describe('PostgreSQL ends while the service runs', () => {
  beforeEach(copyTemplate)
  const METRICS_TOKEN = 'Lt9GZkXb3vQ7sNw2RyHc5Jp8Md4Tf6Ka'

  test('the service starts PostgreSQL again after each kill, and /readyz and the metric are right', async () => {
    const service = await startService({ DATA_DIR: dataDir, METRICS_TOKEN })
    cleanups.push(() => service.stop())
    for (let round = 1; round <= 3; round += 1) {
      const pid = await readPostmasterPid(dataDir)
      process.kill(pid, 'SIGKILL')
      await waitUntil(async () => {
        const { status } = await fetch(`${service.address}/readyz`)
        assert.ok(status === 200 || status === 503)
        return status === 200 && (await readPostmasterPid(dataDir).catch(() => pid)) !== pid
      })
      const answer = await fetch(`${service.address}/metrics`, {
        headers: { authorization: `Bearer ${METRICS_TOKEN}` },
      })
      assert.match(await answer.text(), new RegExp(`^courtside_embedded_restarts_total ${round}$`, 'm'))
      assert.equal((await fetch(`${service.address}/healthz`)).status, 200)
    }
    const lines = service.lines.filter(line => line.includes('the embedded PostgreSQL has ended; starting it again'))
    assert.equal(lines.length, 3)
    const pid = await readPostmasterPid(dataDir)
    assert.equal(await service.stop(), 0)
    assert.equal(isAlive(pid), false)
  })

  test('a service that is stopped while PostgreSQL starts again leaves no server behind', async () => {
    for (const delayMs of [0, 30, 100, 300]) {
      const service = await startService({ DATA_DIR: dataDir })
      process.kill(await readPostmasterPid(dataDir), 'SIGKILL')
      await delay(delayMs)
      await service.stop()
      const running = execFileSync('ps', ['-e', '-o', 'args'], { encoding: 'utf8' })
      assert.ok(!running.includes(join(dataDir, 'postgres')), running)
    }
  })
})

const canMount = spawnSync('unshare', ['--mount', 'true']).status === 0

test('a start works with a /dev/shm that is tiny or read-only, also on an existing cluster', {
  skip: !canMount && 'this system does not permit mounts',
}, async () => {
  for (const options of ['size=4k', 'ro']) {
    const script = `mount -t tmpfs -o ${options} tmpfs /dev/shm && exec "$@"`
    for (let round = 0; round < 2; round += 1) {
      const started = spawnSync(
        'unshare',
        ['--mount', '--ipc', 'sh', '-c', script, 'sh', process.execPath, BIN, 'migrate'],
        { env: { PATH: process.env.PATH, DATA_DIR: join(folder, options) }, encoding: 'utf8' },
      )
      assert.equal(started.status, 0, started.stderr)
    }
  }
})

test('a program that another process stops with SIGSTOP is ended when its time is over', async () => {
  await assert.rejects(
    runProgram({ wrapper: [] }, '/bin/sh', ['-c', 'kill -STOP $$'], { timeout: 300 }),
    /sh failed: it did not end within 0.3 s/,
  )
})
