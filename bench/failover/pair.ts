import { type ChildProcess, execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { pino } from 'pino'
import { chooseAccount, runInitdb } from '../../src/embedded/database-user.ts'
import { giveFolder } from '../../src/embedded/give-folder.ts'
import { type Account, spawnProgram } from '../../src/embedded/programs.ts'
import { administer } from '../postgres.ts'
import { freePort } from '../programs.ts'
import { listChildren } from '../resources.ts'

export type Pair = {
  /** A URL with both servers as hosts. The primary is the first host. */
  url: string
  primaryUrl: string
  standbyUrl: string
  /** Kills every process of the primary together, as if the machine had failed. */
  killPrimary(): Promise<void>
  /** Stops every process of the primary with SIGSTOP. Connections stay open, as if the machine had lost its power. */
  freezePrimary(): Promise<void>
  promote(): Promise<void>
  stop(): Promise<void>
}

/**
 * Starts a primary and a streaming standby on this machine.
 * @param bin the folder of PostgreSQL's programs, including `pg_basebackup`
 * @param synchronous whether the primary acknowledges a commit only after the standby has written it to its disk
 */
export async function startPair(bin: string, synchronous: boolean): Promise<Pair> {
  const folder = await mkdtemp(join(tmpdir(), 'courtside-failover-'))
  const account = await chooseAccount(bin, folder, pino({ level: 'warn' }))
  const [primaryPort, standbyPort] = [await freePort(), await freePort()]
  const urlFor = (port: number, database = 'courtside') => `postgres://postgres@127.0.0.1:${port}/${database}`
  const primaryFolder = join(folder, 'primary')
  await mkdir(primaryFolder, { mode: 0o700 })
  const primaryData = join(primaryFolder, 'data')
  const cluster = ['--pgdata', primaryData, '--username', 'postgres', '--auth', 'trust', '--encoding', 'UTF8']
  await runInitdb(account, join(bin, 'initdb'), primaryFolder, cluster)
  const primary = await startServer({ account, bin }, primaryData, primaryPort, urlFor(primaryPort, 'postgres'))
  await administer(urlFor(primaryPort, 'postgres'), 'create database courtside')
  const standbyData = join(folder, 'standby')
  const source = ['--host', '127.0.0.1', '--port', String(primaryPort), '--username', 'postgres']
  const backup = ['--pgdata', standbyData, '--wal-method', 'stream', '--checkpoint', 'fast', '--write-recovery-conf']
  await promisify(execFile)(join(bin, 'pg_basebackup'), [...source, ...backup])
  await giveFolder(account, standbyData)
  const standby = await startServer({ account, bin }, standbyData, standbyPort, urlFor(standbyPort, 'postgres'))
  await waitUntilStreaming(urlFor(primaryPort))
  // Set `synchronous_standby_names` only now, after the standby has copied the settings of the primary. With this
  // setting, a promoted standby would wait forever for another standby.
  if (synchronous) {
    await administer(urlFor(primaryPort), `alter system set synchronous_standby_names = '*'`)
    await administer(urlFor(primaryPort), 'select pg_reload_conf()')
  }
  return {
    url: `postgres://postgres@127.0.0.1:${primaryPort},127.0.0.1:${standbyPort}/courtside`,
    primaryUrl: urlFor(primaryPort),
    standbyUrl: urlFor(standbyPort),
    async killPrimary() {
      const exited = once(primary, 'exit')
      for (const pid of await listChildren(primary.pid!)) process.kill(pid, 'SIGKILL')
      primary.kill('SIGKILL')
      await exited
    },
    async freezePrimary() {
      primary.kill('SIGSTOP')
      for (const pid of await listChildren(primary.pid!)) process.kill(pid, 'SIGSTOP')
    },
    async promote() {
      await administer(urlFor(standbyPort, 'postgres'), 'select pg_promote(wait => false)')
    },
    async stop() {
      for (const server of [primary, standby]) {
        if (server.exitCode !== null || server.signalCode !== null) continue
        const exited = once(server, 'exit')
        // SIGQUIT is PostgreSQL's "immediate" shutdown. The server need not save its data, because the data folder is
        // deleted next.
        server.kill('SIGQUIT')
        // A frozen server handles the signal only after SIGCONT. After 5 s it kills its frozen children.
        server.kill('SIGCONT')
        await exited
      }
      await rm(folder, { recursive: true, force: true })
    },
  }
}

type Programs = { account: Account; bin: string }

async function startServer(programs: Programs, data: string, port: number, url: string): Promise<ChildProcess> {
  const log = await open(`${data}.log`, 'a', 0o600)
  const local = ['-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories=', '-c', 'max_connections=200']
  const server = spawnProgram(
    programs.account,
    join(programs.bin, 'postgres'),
    ['-D', data, '-p', String(port), ...local],
    {
      stdio: ['ignore', log.fd, log.fd],
    },
  )
  await log.close()
  for (let attempt = 1; ; attempt += 1) {
    const answered = await administer(url, 'select 1').catch(error => error as Error)
    if (Array.isArray(answered)) return server
    if (attempt === 300 || server.exitCode !== null) throw answered
    await delay(100)
  }
}

async function waitUntilStreaming(primaryUrl: string): Promise<void> {
  for (let attempt = 1; attempt <= 100; attempt += 1) {
    const rows = await administer(primaryUrl, `select from pg_stat_replication where state = 'streaming'`)
    if (rows.length > 0) return
    await delay(100)
  }
  throw new Error('the standby did not start to stream from the primary')
}
