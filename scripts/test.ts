// `npm test [-- files] [--minutes=N] [options of node --test]` starts a temporary PostgreSQL, migrates a template
// database, runs the tests and stops PostgreSQL. If TEST_PG_BIN is set, it names a folder, and the script starts
// PostgreSQL from the programs in this folder. If TEST_DATABASE_URL is set, the script starts no PostgreSQL, and the
// tests use the running server at this URL.
//
// Time limits end a test run that hangs. A test or hook fails after TEST_TIMEOUT_MS, unless it sets its own `timeout`.
// The process of a test file is ended after N minutes (default 10), and the whole run after six times N minutes.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { pino } from 'pino'
import { migrate } from '../src/db/migrate.ts'

const TEMPLATE = process.env.TEST_TEMPLATE_NAME ?? 'courtside_template'
const TEST_TIMEOUT_MS = 120_000
const WATCHDOG = new URL('test-watchdog.ts', import.meta.url).href

const args = process.argv.slice(2)
const minutes = Number(args.find(arg => arg.startsWith('--minutes='))?.slice('--minutes='.length) ?? 10)
const options = args.filter(arg => arg.startsWith('--') && !arg.startsWith('--minutes='))
const files = args.filter(arg => !arg.startsWith('--'))

const cluster = process.env.TEST_DATABASE_URL ? undefined : await startCluster()
const url = process.env.TEST_DATABASE_URL ?? cluster!.url
let code = 1
try {
  await prepareTemplate()
  code = await runTests()
} finally {
  await cluster?.stop()
}
process.exit(code)

/** Runs the tests. @returns the exit code of the runner, or 1 if the run took too long */
async function runTests(): Promise<number> {
  const runner = spawn(
    process.execPath,
    [
      ...[`--import=${WATCHDOG}`, '--test', '--test-concurrency=2', `--test-timeout=${TEST_TIMEOUT_MS}`],
      ...options,
      ...(files.length > 0 ? files : ['test/**/*.test.ts']),
    ],
    {
      stdio: 'inherit',
      env: { ...process.env, TEST_DATABASE_URL: url, TEST_TEMPLATE: TEMPLATE, TEST_FILE_MINUTES: String(minutes) },
    },
  )
  const deadline = setTimeout(
    () => {
      console.error(`The tests did not end within ${6 * minutes} minutes.`)
      // On SIGTERM, the runner stops the processes of its test files before it ends.
      runner.kill('SIGTERM')
    },
    6 * minutes * 60_000,
  )
  const [exitCode] = await once(runner, 'exit')
  clearTimeout(deadline)
  return exitCode ?? 1
}

async function startCluster(): Promise<{ url: string; stop(): Promise<void> }> {
  const { startThrowAway } = await import('../src/embedded/throw-away.ts')
  const folder = await mkdtemp(join(tmpdir(), 'courtside-test-'))
  const started = await startThrowAway(folder, pino({ level: 'error' }), { bin: process.env.TEST_PG_BIN })
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
