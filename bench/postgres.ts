import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { pino } from 'pino'
import { migrate } from '../src/db/migrate.ts'
import { startThrowAway } from '../src/embedded/throw-away.ts'
import { readTreeCpuSeconds } from './resources.ts'
import { startStandby } from './standby.ts'

export type Postgres = {
  /** Creates an empty database. If a database with this name exists, it is replaced. @returns the URL */
  createDatabase(name: string): Promise<string>
  /** Creates a database with the tables of the service, as a copy of a migrated template. @returns the URL */
  createMigrated(name: string): Promise<string>
  /** Returns the URL of a database, or undefined if it does not exist. */
  findDatabase(name: string): Promise<string | undefined>
  /** @returns the new URL */
  renameDatabase(name: string, to: string): Promise<string>
  /** Returns the CPU time that all processes of PostgreSQL have used so far, in seconds. */
  cpuSeconds(): Promise<number>
  stop(): Promise<void>
}

// PostgreSQL flushes commits to the disk as in production. PostgreSQL has enough memory, so only commits wait for the
// disk. The settings make checkpoints rare, because a checkpoint during a run would slow down the measured program.
const SETTINGS = {
  max_connections: '200',
  // `slow-flush.c` slows this method down.
  wal_sync_method: 'fdatasync',
  shared_buffers: '1GB',
  max_wal_size: '8GB',
  checkpoint_timeout: '30min',
  maintenance_work_mem: '512MB',
}

type Options = {
  /** The data folder. The default is a temporary folder. */
  folder?: string | undefined
  settings?: Record<string, string>
  /** A library that PostgreSQL loads first. */
  preload?: string
  /** Whether each commit waits for a standby. */
  hasStandby?: boolean
}

/** Starts a PostgreSQL server for the bench: the embedded PostgreSQL, or the programs in the folder TEST_PG_BIN. */
export async function startPostgres({ folder, settings = {}, preload, hasStandby }: Options = {}): Promise<Postgres> {
  const dataDir = folder ?? (await mkdtemp(join(tmpdir(), 'courtside-bench-')))
  const log = pino({ level: 'warn' })
  const bin = process.env.TEST_PG_BIN
  const allSettings = { ...SETTINGS, ...settings }
  const server = await startThrowAway(dataDir, log, { bin, preload, settings: allSettings })
  const standby = hasStandby ? await startStandby(server, allSettings) : undefined
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
      // While the server shuts down, it waits for its standby.
      await Promise.all([server.stop(), standby?.stop()])
      if (folder === undefined) await rm(dataDir, { recursive: true, force: true })
    },
  }
}

/** Runs one statement on a separate connection. Finds the tables of the service and those of other programs. */
export async function administer(url: string, statement: string): Promise<Record<string, any>[]> {
  const client = new pg.Client({ connectionString: url, options: '-c search_path=courtside,public' })
  await client.connect()
  try {
    return (await client.query(statement)).rows
  } finally {
    await client.end()
  }
}
