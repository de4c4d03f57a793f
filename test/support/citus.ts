import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { pino } from 'pino'
import { startThrowAway } from '../../src/embedded/throw-away.ts'

const SETTINGS = { fsync: 'off', max_connections: '200', shared_preload_libraries: 'citus' }

/** A coordinator of Citus with two workers. */
export type CitusCluster = {
  /** The URL of the database `courtside` on the coordinator. */
  url: string
  /** The URLs of this database on the workers. */
  workerUrls: string[]
  stopWorker(index: number): Promise<void>
  stop(): Promise<void>
}

/** Starts three servers from the programs in the folder CITUS_PG_BIN, and joins them. */
export async function startCitus(): Promise<CitusCluster> {
  const folder = await mkdtemp(join(tmpdir(), 'courtside-citus-'))
  const log = pino({ level: 'error' })
  const options = { bin: process.env.CITUS_PG_BIN, settings: SETTINGS }
  const [coordinator, ...workers] = await Promise.all(
    ['coordinator', 'worker1', 'worker2'].map(name => startThrowAway(join(folder, name), log, options)),
  )
  const servers = [coordinator!, ...workers]
  const { username, password } = new URL(coordinator!.url)
  for (const { url } of servers) {
    // The servers log in to each other with one password. Node 0 stands for every node.
    await query(
      url,
      `create extension citus; alter role ${username} password '${password}';
        insert into pg_dist_authinfo values (0, '${username}', 'password=${password}')`,
    )
  }
  for (const [index, { url }] of servers.entries()) {
    const { hostname, port } = new URL(url)
    const add = index === 0 ? 'citus_set_coordinator_host' : 'citus_add_node'
    await query(coordinator!.url, `select ${add}('${hostname}', ${port})`)
  }
  return {
    url: coordinator!.url,
    workerUrls: workers.map(({ url }) => Object.assign(new URL(url), { password }).href),
    stopWorker: index => workers[index]!.stop(),
    async stop() {
      for (const { stop } of servers) await stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function query(url: string, statement: string) {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(statement)).rows
  } finally {
    await client.end()
  }
}
