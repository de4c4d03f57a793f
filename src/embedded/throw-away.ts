import { createServer } from 'node:net'
import { join } from 'node:path'
import type { FastifyBaseLogger } from 'fastify'
import { prepareDataFolder } from '../data-folder.ts'
import { newSecret } from '../secrets.ts'
import { asSuperuser } from './access.ts'
import { createCluster, type Programs, replaceFile, SUPERUSER } from './cluster.ts'
import { chooseAccount } from './database-user.ts'
import { launch } from './launch.ts'
import { findEmbeddedPrograms, readMajor } from './programs.ts'

/** With these settings, the server does not flush data to disk. A crash of the machine may lose data. */
const FAST_SETTINGS = { fsync: 'off', max_connections: '200' }

/**
 * Starts a server for tests and for the bench. The server listens on a free port of the loopback interface, because
 * tests put proxies before it.
 * @param options.bin the folder with the programs of another PostgreSQL. By default, the programs that npm installed
 *   are used
 * @param options.preload a library that the programs load first
 * @returns the URL of the database `courtside`, whose user is a superuser
 */
export async function startThrowAway(
  dataDir: string,
  log: FastifyBaseLogger,
  options: { bin?: string | undefined; settings?: Record<string, string>; preload?: string | undefined } = {},
): Promise<{ url: string; programs: Programs; cluster: string; stop(): Promise<void> }> {
  const { bin = findEmbeddedPrograms(), settings = FAST_SETTINGS } = options
  const folder = await prepareDataFolder(dataDir)
  const cluster = join(folder, 'postgres')
  const { wrapper, ...account } = await chooseAccount(bin, folder, log)
  const preload = options.preload === undefined ? [] : ['env', `LD_PRELOAD=${options.preload}`]
  const programs = { bin, major: await readMajor(bin), account: { ...account, wrapper: [...wrapper, ...preload] } }
  await createCluster(programs, cluster, log, () => {})
  const rules = `local all ${SUPERUSER} trust\nhost all,replication all 127.0.0.1/32 scram-sha-256\n`
  await replaceFile(cluster, 'pg_hba.conf', rules)
  const port = await findFreePort()
  const address = { listen_addresses: '127.0.0.1', port: String(port) }
  const server = await launch(programs, cluster, { settings: { ...address, ...settings } })
  const password = newSecret()
  await asSuperuser(
    cluster,
    'postgres',
    async client => {
      await client.query(`alter role ${SUPERUSER} password '${password}'`)
      const { rows } = await client.query(`select from pg_database where datname = 'courtside'`)
      if (rows.length === 0) await client.query('create database courtside')
    },
    port,
  )
  return {
    url: `postgres://${SUPERUSER}:${password}@127.0.0.1:${port}/courtside`,
    programs,
    cluster,
    stop: server.stop,
  }
}

async function findFreePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((done, fail) => server.once('error', fail).listen(0, '127.0.0.1', done))
  const { port } = server.address() as { port: number }
  await new Promise(done => server.close(done))
  return port
}
