import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { startEmbedded } from '../src/embedded/server.ts'
import { newEmail } from './support/scenario.ts'
import { courtside, isAlive, readPostmasterPid, startService } from './support/service.ts'
import { waitUntil } from './support/wait-until.ts'

const log = pino({ level: 'silent' })
const BIN = new URL('../bin/courtside.js', import.meta.url).pathname
/** The namespaces that a container has. `--kill-child` ends the service if `unshare` is killed. */
const CONTAINER = ['--pid', '--ipc', '--net', '--mount', '--uts', '--fork', '--mount-proc', '--kill-child']

let folder: string
let dataDir: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'courtside-lock-'))
  dataDir = join(folder, 'data')
})
// The tests add functions that stop what they have started. Hooks of a test would run after the removal of the folder.
const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp()
  await rm(folder, { recursive: true, force: true })
})

/** Runs a command in new namespaces, like those of a container with the host name `name`. */
function runInContainer(name: string, args: string[]) {
  const script = 'hostname "$1" && ip link set lo up && shift && exec "$@"'
  const child = spawn('unshare', [...CONTAINER, 'sh', '-c', script, 'sh', name, process.execPath, BIN, ...args], {
    env: { PATH: process.env.PATH, DATA_DIR: dataDir, PORT: '0' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output = { text: '' }
  for (const stream of [child.stdout, child.stderr]) stream.on('data', chunk => (output.text += chunk))
  return { child, output, ended: once(child, 'close') as Promise<[number]> }
}

/** Sends a signal to the service inside the container, and waits for the end of the container. */
async function stopContainer({ child, ended }: { child: ChildProcess; ended: Promise<unknown> }, signal: string) {
  execFileSync('pkill', ['-P', String(child.pid), `-${signal}`])
  await ended
}

const canUnshare = (() => {
  try {
    const script = 'ip link set lo up && command -v hostname pkill pgrep'
    execFileSync('unshare', [...CONTAINER, 'sh', '-c', script], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
})()

describe('two containers with one data folder', {
  skip: !canUnshare && 'this system does not permit namespaces, or lacks unshare, ip, hostname, pkill or pgrep',
}, () => {
  async function startInContainer(name: string) {
    const container = runInContainer(name, ['serve'])
    await waitUntil(() => {
      if (container.child.exitCode !== null) throw new Error(container.output.text)
      return container.output.text.includes('"msg":"listening"')
    })
    return container
  }

  /** Returns the names and the content of the files that only PostgreSQL writes while it is idle. */
  function fingerprint(): string {
    const cluster = join(dataDir, 'postgres')
    const names = ['postmaster.pid', 'global/pg_control', 'PG_VERSION', 'service-password', 'pg_hba.conf']
    return names
      .map(name =>
        createHash('sha256')
          .update(readFileSync(join(cluster, name)))
          .digest('hex'),
      )
      .join()
  }

  test('the second service says that a process in another container uses the folder, and changes no file', async () => {
    const first = await startInContainer('web-1')
    cleanups.push(() => first.child.kill('SIGKILL'))
    const before = fingerprint()
    for (let round = 0; round < 3; round += 1) {
      const second = runInContainer('web-2', ['serve'])
      const [code] = await second.ended
      assert.equal(code, 1)
      assert.match(second.output.text, /is in use by process \d+ in another container \(host name web-1\)\. Stop that/)
    }
    assert.equal(fingerprint(), before)
    assert.ok(!readdirSync(dataDir).some(name => name.includes('draft') || name.includes('json.')))
    await stopContainer(first, 'TERM')
    assert.match(first.output.text, /"msg":"stopped"/)
    // The folder is free now. The next start need not repair anything.
    const third = await startInContainer('web-3')
    await stopContainer(third, 'TERM')
    assert.match(third.output.text, /"msg":"stopped"/)
  })

  test('a command in another container uses the database of the running service', async () => {
    const service = await startInContainer('web-1')
    cleanups.push(() => service.child.kill('SIGKILL'))
    const before = fingerprint()
    const levels = runInContainer('shell', ['levels', 'list', '--json'])
    assert.deepEqual(await levels.ended, [0, null], levels.output.text)
    assert.equal(JSON.parse(levels.output.text).length, 8)
    const shown = runInContainer('shell', ['users', 'show', newEmail()])
    assert.equal((await shown.ended)[0], 1)
    assert.match(shown.output.text, /^There is no account with the e-mail/)
    assert.equal(fingerprint(), before)
    await stopContainer(service, 'TERM')
    assert.match(service.output.text, /"msg":"stopped"/)
  })

  test('a command says where the service runs, if the socket of its database cannot be reached', async () => {
    const service = await startInContainer('web-1')
    cleanups.push(() => service.child.kill('SIGKILL'))
    await rm(join(dataDir, 'socket/.s.PGSQL.5432'))
    const before = fingerprint()
    const command = runInContainer('shell', ['users', 'show', newEmail()])
    assert.equal((await command.ended)[0], 1)
    assert.match(command.output.text, /in use by process \d+ in another container \(host name web-1\)/)
    assert.match(command.output.text, /does not answer here\. Run the command where that process runs/)
    assert.equal(fingerprint(), before)
  })

  test('after a container was killed, the next one starts without waiting', async () => {
    const killed = await startInContainer('web-1')
    killed.child.kill('SIGKILL')
    await killed.ended
    const next = await startInContainer('web-2')
    cleanups.push(() => next.child.kill('SIGKILL'))
    await stopContainer(next, 'TERM')
    assert.match(next.output.text, /"msg":"stopped"/)
  })

  test('if a service is killed but its container runs on, a start elsewhere does not touch the server in the container', async () => {
    // The shell stays process 1 of the container, so the server outlives the service.
    const script = `ip link set lo up; ${process.execPath} ${BIN} serve; sleep 60`
    const container = spawn('unshare', [...CONTAINER, 'sh', '-c', script], {
      env: { PATH: process.env.PATH, DATA_DIR: dataDir, PORT: '0' },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    cleanups.push(() => container.kill('SIGKILL'))
    let text = ''
    container.stdout.on('data', chunk => (text += chunk))
    await waitUntil(() => text.includes('"msg":"listening"'))
    const before = fingerprint()
    const findChild = (pid: number) => Number(execFileSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' }))
    process.kill(findChild(findChild(container.pid!)), 'SIGKILL')
    await delay(200)
    const next = runInContainer('web-2', ['serve'])
    assert.equal((await next.ended)[0], 1)
    assert.match(next.output.text, /PostgreSQL still runs on .* but its process is not visible here/)
    assert.equal(fingerprint(), before)
  })
})

describe('a machine that shares the data folder through a file system without locks', () => {
  /** Writes the record of a process on another machine. That machine cannot take part in the locks of this kernel. */
  async function writeRecord(beat: number): Promise<void> {
    const record = { id: 'far', role: 'service', pid: 12, host: 'far-away', boot: 'another boot', beat }
    await writeFile(join(dataDir, 'owner.json'), JSON.stringify(record))
  }

  beforeEach(async () => {
    await (await startEmbedded(dataDir, log)).stop()
  })

  test('a start fails while a process on the other machine renews its record', async () => {
    await writeRecord(1)
    let beat = 1
    const timer = setInterval(() => {
      beat += 1
      void writeRecord(beat)
    }, 1_000)
    cleanups.push(() => clearInterval(timer))
    await assert.rejects(startEmbedded(dataDir, log), /is in use by process 12 on the host far-away\./)
  })

  test('a start succeeds after the record of another boot has not changed for some seconds', async () => {
    await writeRecord(1)
    const started = await startEmbedded(dataDir, log)
    await started.stop()
    await assert.rejects(readFile(join(dataDir, 'owner.json')), { code: 'ENOENT' })
  })

  test('a start succeeds if the record is empty or cut', async () => {
    for (const text of ['', '{"id":"far","ro']) {
      await writeFile(join(dataDir, 'owner.json'), text)
      await (await startEmbedded(dataDir, log)).stop()
    }
  })

  test('a service that has lost its folder to another machine stops its database and ends', async () => {
    const service = await startService({ DATA_DIR: dataDir })
    const pid = await readPostmasterPid(dataDir)
    await writeRecord(1)
    await once(service.process, 'exit')
    assert.match(service.lines.join('\n'), /another process has taken the data folder; stopping/)
    await waitUntil(() => !isAlive(pid))
    // The record of the other machine is still there.
    assert.match(await readFile(join(dataDir, 'owner.json'), 'utf8'), /far-away/)
  })
})

test('while the service runs, it renews its record, and four commands and two more services do not disturb it', async () => {
  const service = await startService({ DATA_DIR: dataDir })
  cleanups.push(() => service.stop())
  const readBeat = async () => JSON.parse(await readFile(join(dataDir, 'owner.json'), 'utf8')).beat as number
  const [first, ...others] = [
    readBeat(),
    ...Array.from({ length: 4 }, () => courtside(['levels', 'list', '--json'], { DATA_DIR: dataDir })),
    ...Array.from({ length: 2 }, () =>
      startService({ DATA_DIR: dataDir }).catch(error => ({ refusal: String(error) })),
    ),
  ]
  for (const outcome of await Promise.all(others)) {
    if ('code' in outcome) assert.equal(outcome.code, 0, outcome.errors)
    else {
      const { refusal } = outcome as { refusal: string }
      assert.match(refusal, new RegExp(`process ${service.process.pid}\\.`))
      // A start that is refused has not touched the database.
      assert.doesNotMatch(refusal, /"level"/)
    }
  }
  const before = await first
  await waitUntil(async () => (await readBeat()) > before)
  assert.equal((await fetch(`${service.address}/readyz`)).status, 200)
})

test('a service restores a record that is missing or empty, and commands work again', async () => {
  const service = await startService({ DATA_DIR: dataDir })
  cleanups.push(() => service.stop())
  const path = join(dataDir, 'owner.json')
  const record = JSON.parse(await readFile(path, 'utf8'))
  for (const damage of [() => rm(path), () => writeFile(path, '')]) {
    await damage()
    await waitUntil(async () => (await readFile(path, 'utf8').catch(() => '')).length > 0)
    assert.equal(JSON.parse(await readFile(path, 'utf8')).id, record.id)
    assert.equal((await courtside(['levels', 'list'], { DATA_DIR: dataDir })).code, 0)
  }
})

test('if no service runs, several commands that start together run one after the other', async () => {
  await (await startService({ DATA_DIR: dataDir })).stop()
  const commands = Array.from({ length: 4 }, () => courtside(['levels', 'list', '--json'], { DATA_DIR: dataDir }))
  for (const { code, errors, output } of await Promise.all(commands)) {
    assert.equal(code, 0, errors)
    assert.equal(JSON.parse(output).length, 8)
  }
  await assert.rejects(readFile(join(dataDir, 'postgres/postmaster.pid')), { code: 'ENOENT' })
})
