// npm test [-- files]: starts a throw-away PostgreSQL, migrates a template, runs the tests, stops it.
// TEST_PG_BIN names the programs of another PostgreSQL; TEST_DATABASE_URL a server that is already there.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { pino } from 'pino'
import { migrate } from '../src/db/migrate.ts'

const TEMPLATE = process.env.TEST_TEMPLATE_NAME ?? 'courtside_template'

const options = process.argv.slice(2).filter(argument => argument.startsWith('--'))
const files = process.argv.slice(2).filter(argument => !argument.startsWith('--'))
const cluster = process.env.TEST_DATABASE_URL ? undefined : await startCluster()
const url = process.env.TEST_DATABASE_URL ?? cluster!.url
let code = 1
try {
  await prepareTemplate()
  const runner = spawn(
    process.execPath,
    ['--test', '--test-concurrency=2', ...options, ...(files.length > 0 ? files : ['test/**/*.test.ts'])],
    { stdio: 'inherit', env: { ...process.env, TEST_DATABASE_URL: url, TEST_TEMPLATE: TEMPLATE } },
  )
  ;[code] = await once(runner, 'exit')
} finally {
  await cluster?.stop()
}
process.exit(code ?? 1)

async function startCluster(): Promise<{ url: string; stop(): Promise<void> }> {
  const { startThrowAway } = await import('../src/embedded/server.ts')
  const folder = await mkdtemp(join(tmpdir(), 'courtside-test-'))
  const started = await startThrowAway(folder, process.env.TEST_PG_BIN, pino({ level: 'warn' }))
  return {
    url: started.url,
    stop: async () => {
      await started.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function prepareTemplate(): Promise<void> {
  const admin = new pg.Client({ connectionString: url })
  await admin.connect()
  await admin.query(`drop database if exists ${TEMPLATE} with (force)`)
  await admin.query(`create database ${TEMPLATE}`)
  await admin.end()
  await migrate(Object.assign(new URL(url), { pathname: `/${TEMPLATE}` }).href)
}
