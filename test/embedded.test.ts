import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'
import pg from 'pg'
import { pino } from 'pino'
import { runningEmbedded, startEmbedded } from '../src/db/embedded.ts'
import { startService } from './support/service.ts'

const log = pino({ level: 'silent' })

let folder: string
let dataDir: string

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

/** A service of its own process, killed without warning. */
async function killedService(): Promise<void> {
  const service = await startService({ DATA_DIR: dataDir, HOST: '127.0.0.1' })
  await service.stop('SIGKILL')
}

describe('the embedded database', () => {
  test('starts empty-handed, keeps what was written, listens on loopback with a password', async () => {
    const first = await startEmbedded(dataDir, log)
    await ask(first.url, 'create table kept as select 7 as value')
    const [settings] = await ask(
      first.url,
      `select current_setting('listen_addresses') as addresses, current_setting('fsync') as fsync,
        current_setting('server_encoding') as encoding, current_setting('server_version_num')::int / 10000 as version`,
    )
    assert.deepEqual(settings, { addresses: '127.0.0.1', fsync: 'on', encoding: 'UTF8', version: 18 })
    const stranger = Object.assign(new URL(first.url), { password: 'guessed' }).href
    await assert.rejects(ask(stranger, 'select'), { code: '28P01' })
    assert.equal(await runningEmbedded(dataDir), first.url)
    await first.stop()
    assert.equal(await runningEmbedded(dataDir), undefined)

    const second = await startEmbedded(dataDir, log)
    assert.deepEqual(await ask(second.url, 'select value from kept'), [{ value: 7 }])
    await second.stop()
    for (const name of ['postgres', 'postgres-password', 'postgres.log']) {
      assert.equal((await stat(join(dataDir, name))).mode & 0o077, 0, `${name} is open to others`)
    }
  })

  test('a second process on the same data is refused plainly, and the first goes on', async () => {
    const service = await startService({ DATA_DIR: dataDir })
    const pid = service.process.pid
    await assert.rejects(startEmbedded(dataDir, log), new RegExp(`is in use by process ${pid}\\.`))
    assert.equal((await fetch(`${service.address}/readyz`)).status, 200)
    assert.equal(await service.stop(), 0)
  })

  test('of several that start at once one owns it', async () => {
    const starts = Array.from({ length: 4 }, () => startService({ DATA_DIR: dataDir }))
    const settled = await Promise.allSettled(starts)
    const started = settled.filter(outcome => outcome.status === 'fulfilled').map(outcome => outcome.value)
    assert.equal(
      started.length,
      1,
      settled.map(outcome => String((outcome as PromiseRejectedResult).reason)).join('\n'),
    )
    assert.equal((await fetch(`${started[0]!.address}/readyz`)).status, 200)
    await started[0]!.stop()
  })

  test('the cluster of a killed process is adopted by the next one', async () => {
    await killedService()
    const pid = await postmasterPid()
    const adopted = await startEmbedded(dataDir, log)
    assert.equal(await postmasterPid(), pid)
    await adopted.stop()
    assert.throws(() => process.kill(pid, 0))
  })

  test('after both were killed the next start recovers', async () => {
    await killedService()
    const pid = await postmasterPid()
    process.kill(pid, 'SIGKILL')
    const recovered = await startEmbedded(dataDir, log)
    assert.deepEqual(await ask(recovered.url, 'select count(*)::int as levels from game_level'), [{ levels: 8 }])
    await recovered.stop()
  })

  test('a lock file whose number another program has now is no obstacle', async () => {
    const first = await startEmbedded(dataDir, log)
    const path = join(dataDir, 'postgres/postmaster.pid')
    const lines = (await readFile(path, 'utf8')).split('\n')
    await first.stop()
    const other = spawn('sleep', ['60'])
    await writeFile(path, [other.pid, ...lines.slice(1)].join('\n'))
    const second = await startEmbedded(dataDir, log)
    await second.stop()
    assert.equal(other.exitCode, null)
    other.kill()
  })

  test('a first start that was broken off leaves nothing half done', async () => {
    const broken = spawn(process.execPath, [new URL('../bin/courtside.js', import.meta.url).pathname, 'serve'], {
      env: { PATH: process.env.PATH, DATA_DIR: dataDir, PORT: '0' },
      stdio: 'ignore',
      detached: true,
    })
    // As soon as initdb is at work, everything is killed.
    for (;;) {
      const names = await readdir(dataDir).catch(() => [])
      if (names.some(name => name.startsWith('postgres-') && name !== 'postgres-password')) break
      await new Promise(setImmediate)
    }
    process.kill(-broken.pid!, 'SIGKILL')
    await once(broken, 'exit')
    const started = await startEmbedded(dataDir, log)
    assert.deepEqual(await ask(started.url, 'select 1 as one'), [{ one: 1 }])
    await started.stop()
  })

  test('a Ctrl-C at the terminal reaches the service alone, which then stops its database in good order', async () => {
    const service = await startService({ DATA_DIR: dataDir })
    const pid = await postmasterPid()
    const group = (of: number) => execFileSync('ps', ['-o', 'pgid=', '-p', String(of)], { encoding: 'utf8' }).trim()
    assert.notEqual(group(pid), group(service.process.pid!))
    assert.equal(await service.stop('SIGINT'), 0)
    assert.throws(() => process.kill(pid, 0))
  })
})

describe('who runs it', { skip: process.getuid?.() !== 0 && 'only root can become another user' }, () => {
  const NOBODY = 65_534
  let checkout: string

  before(async () => {
    checkout = await mkdtemp(join(tmpdir(), 'courtside-checkout-'))
    for (const part of ['bin', 'src', 'migrations', 'node_modules', 'package.json']) {
      execFileSync('cp', ['-a', new URL(`../${part}`, import.meta.url).pathname, checkout])
    }
  })
  after(() => rm(checkout, { recursive: true, force: true }))

  /** Starts and stops a database in the checkout, in a process of the given user. @returns what it printed */
  async function startAs(uid: number, path: string): Promise<string> {
    const data = join(checkout, `data-${uid}-${path.length}`)
    if (uid !== 0) {
      await mkdir(data)
      await chown(data, uid, uid)
    }
    const script = `import { startEmbedded } from ${JSON.stringify(join(checkout, 'src/db/embedded.ts'))}
      import { statSync } from 'node:fs'
      try {
        const started = await startEmbedded(${JSON.stringify(data)}, { info() {}, error() {} })
        console.log('owner', statSync(${JSON.stringify(join(data, 'postgres/postmaster.pid'))}).uid)
        await started.stop()
      } catch (error) {
        console.log(error.message)
      }`
    const node = join(checkout, 'node_modules/node/bin/node')
    const options = { uid, gid: uid, encoding: 'utf8' as const, env: { PATH: path } }
    return execFileSync(node, ['--input-type=module', '-e', script], options)
  }

  test('an ordinary user needs nothing more', async () => {
    await chmod(checkout, 0o755)
    assert.equal(await startAs(NOBODY, ''), `owner ${NOBODY}\n`)
  })

  test('root in a closed checkout: its files stay root’s', async () => {
    await chmod(checkout, 0o700)
    assert.equal(await startAs(0, process.env.PATH!), 'owner 0\n')
  })

  // An empty PATH has no unshare, which is as good as one that is refused.
  test('root without user namespaces: as the real nobody', async () => {
    await chmod(checkout, 0o755)
    assert.equal(await startAs(0, ''), `owner ${NOBODY}\n`)
  })

  test('root without user namespaces in a closed checkout: what to do is said', async () => {
    await chmod(checkout, 0o700)
    assert.match(await startAs(0, '/none'), /Start Courtside as an ordinary user, move it .* or set DATABASE_URL/)
  })
})
