import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { pino } from 'pino'
import { migrate } from '../src/db/migrate.ts'
import { startEmbedded } from '../src/embedded/server.ts'
import { readTreeCpuSeconds } from './resources.ts'

export type Postgres = {
  /** Makes an empty database, anew if there is one. @returns its URL */
  createDatabase(name: string): Promise<string>
  /** The same with the service's schema: a copy of one that was migrated once. */
  createMigrated(name: string): Promise<string>
  /** The URL of a database that is there, or undefined. */
  findDatabase(name: string): Promise<string | undefined>
  /** @returns its URL */
  renameDatabase(name: string, to: string): Promise<string>
  /** CPU seconds that all its processes have used so far. */
  cpuSeconds(): Promise<number>
  stop(): Promise<void>
}

// As durable as it is in production, with memory enough that nothing waits for the disk but a commit. A checkpoint in the
// middle would fall upon whoever is measured just then.
const SETTINGS = {
  max_connections: '200',
  shared_buffers: '1GB',
  max_wal_size: '8GB',
  checkpoint_timeout: '30min',
  maintenance_work_mem: '512MB',
}

/**
 * Starts a PostgreSQL of the bench's own: the embedded one, or that of TEST_PG_BIN.
 * @param folder where its data is kept; by default a folder that goes with it
 */
export async function startPostgres(folder?: string, settings: Record<string, string> = {}): Promise<Postgres> {
  const dataDir = folder ?? (await mkdtemp(join(tmpdir(), 'courtside-bench-')))
  const log = pino({ level: 'warn' })
  const bin = process.env.TEST_PG_BIN
  const server = await startEmbedded(dataDir, log, { bin, settings: { ...SETTINGS, ...settings } })
  const postmaster = Number.parseInt(await readFile(join(dataDir, 'postgres/postmaster.pid'), 'utf8'), 10)
  const urlFor = (name: string) => Object.assign(new URL(server.url), { pathname: `/${name}` }).href
  const createDatabase = async (name: string, template = 'template1') => {
    await administer(server.url, `drop database if exists ${name} with (force)`)
    await administer(server.url, `create database ${name} template ${template}`)
    return urlFor(name)
  }
  let template: Promise<unknown> | undefined
  return {
    createDatabase,
    async createMigrated(name) {
      template ??= createDatabase('migrated').then(migrate)
      await template
      return createDatabase(name, 'migrated')
    },
    async findDatabase(name) {
      const found = await administer(server.url, `select from pg_database where datname = '${name}'`)
      return found.length > 0 ? urlFor(name) : undefined
    },
    async renameDatabase(name, to) {
      await administer(server.url, `alter database ${name} rename to ${to}`)
      return urlFor(to)
    },
    cpuSeconds: () => readTreeCpuSeconds(postmaster),
    async stop() {
      await server.stop()
      if (folder === undefined) await rm(dataDir, { recursive: true, force: true })
    },
  }
}

/** Runs one statement on a connection of its own. */
export async function administer(url: string, statement: string): Promise<Record<string, any>[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(statement)).rows
  } finally {
    await client.end()
  }
}
