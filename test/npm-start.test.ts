import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { waitUntilListening } from './support/service.ts'
import { waitUntil } from './support/wait-until.ts'

const ROOT = new URL('..', import.meta.url).pathname
const skipOnWindows = process.platform !== 'linux' && 'the test reads /proc'

type Started = { child: ChildProcess; address: string; lines: string[]; folder: string }

/**
 * Runs a command that starts the service on its embedded PostgreSQL, in a new process group.
 * @param folder a new folder. The environment or the arguments of every process contain its path
 * @param env variables of the environment in addition to those that the service needs
 */
async function start([command, ...args]: string[], folder: string, env: Record<string, string> = {}): Promise<Started> {
  const child = spawn(command!, args, {
    cwd: ROOT,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, HOME: process.env.HOME, PORT: '0', DATA_DIR: join(folder, 'data'), ...env },
  })
  const { listening, lines } = await waitUntilListening(child)
  return { child, address: listening.address!, lines, folder }
}

/** Returns the ids of the processes whose arguments or environment contain the path of a folder. */
function findProcesses(folder: string): number[] {
  return globSync('/proc/[0-9]*')
    .filter(path => {
      try {
        return ['cmdline', 'environ'].some(name => readFileSync(`${path}/${name}`).includes(folder))
      } catch {
        // The process has ended.
        return false
      }
    })
    .map(path => Number(path.slice('/proc/'.length)))
}

/** Returns the ids of the direct children of a process. */
function findChildren(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
}

/** Waits until no process of the service is left. Checks that the service and its PostgreSQL were stopped in order. */
async function assertOrderlyEnd({ lines, folder, address }: Started): Promise<void> {
  await waitUntil(() => findProcesses(folder).length === 0, 40_000)
  await waitUntil(() => lines.some(line => line.includes('"stopped"')))
  assert.ok(lines.some(line => line.includes('"stopping"')))
  // PostgreSQL removes this file only if it stops in order.
  assert.deepEqual(globSync(join(folder, 'data/postgres/postmaster.pid')), [])
  await assert.rejects(fetch(`${address}/healthz`))
}

describe('npm start', { skip: skipOnWindows, timeout: 300_000 }, () => {
  /** Registers a test that starts the service, ends it with `stop`, and checks that nothing is left. */
  function testStop(
    title: string,
    command: string[],
    stop: (started: Started) => unknown,
    skip: string | false = false,
  ): void {
    test(title, { skip, timeout: 120_000 }, async t => {
      const folder = await mkdtemp(join(tmpdir(), 'courtside-npm-start-'))
      t.after(async () => {
        for (const pid of findProcesses(folder)) process.kill(pid, 'SIGKILL')
        await rm(folder, { recursive: true, force: true })
      })
      const started = await start(command, folder)
      assert.ok(findProcesses(folder).length >= 3, 'npm, the service and PostgreSQL')
      const exited = once(started.child, 'exit')
      await stop(started)
      await exited
      await assertOrderlyEnd(started)
    })
  }

  testStop('SIGTERM to npm stops the service and its PostgreSQL in order', ['npm', 'start'], ({ child }) =>
    child.kill('SIGTERM'),
  )

  testStop(
    'SIGTERM to a shell that runs exec npm start stops the service and its PostgreSQL in order',
    ['sh', '-c', 'exec npm start'],
    ({ child }) => child.kill('SIGTERM'),
  )

  testStop('SIGHUP from a closed terminal stops the service in order', ['npm', 'start'], ({ child }) =>
    process.kill(-child.pid!, 'SIGHUP'),
  )

  testStop('Ctrl-C, which npm forwards a second time, stops the service in order', ['npm', 'start'], ({ child }) =>
    process.kill(-child.pid!, 'SIGINT'),
  )

  testStop('SIGKILL to npm stops the service in order, and leaves no orphan', ['npm', 'start'], ({ child }) =>
    child.kill('SIGKILL'),
  )

  test('a service that the npm script of another package starts in the background outlives this script', async t => {
    const folder = await mkdtemp(join(tmpdir(), 'courtside-npm-start-'))
    t.after(async () => {
      for (const pid of findProcesses(folder)) process.kill(pid, 'SIGKILL')
      await rm(folder, { recursive: true, force: true })
    })
    const env = { npm_package_name: 'deployment', npm_lifecycle_event: 'deploy' }
    const started = await start(['sh', '-c', 'bin/node bin/courtside.js serve & wait'], folder, env)
    const [service] = findChildren(started.child.pid!)
    started.child.kill('SIGKILL')
    await once(started.child, 'exit')
    // The service looks for its parent each second.
    await delay(2_500)
    assert.equal((await fetch(`${started.address}/healthz`)).status, 200)
    process.kill(service!, 'SIGTERM')
    await assertOrderlyEnd(started)
  })

  const namespace = ['unshare', '--pid', '--fork', '--mount-proc', '--kill-child']
  testStop(
    'SIGTERM to npm start as process 1 of a container stops the service in order',
    [...namespace, 'npm', 'start'],
    ({ child }) => process.kill(findChildren(child.pid!)[0]!, 'SIGTERM'),
    canRun(namespace) ? false : 'this system does not allow unshare to create a namespace',
  )

  testStop(
    'SIGTERM to node as process 1 of a container stops the service in order',
    [...namespace, process.execPath, 'bin/courtside.js', 'serve'],
    ({ child }) => process.kill(findChildren(child.pid!)[0]!, 'SIGTERM'),
    canRun(namespace) ? false : 'this system does not allow unshare to create a namespace',
  )
})

function canRun([command, ...args]: string[]): boolean {
  try {
    execFileSync(command!, [...args, 'true'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
