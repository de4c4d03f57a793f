import { once } from 'node:events'
import { parseArgs } from 'node:util'
import type { Logger } from 'pino'
import { createApp } from '../app.ts'
import { sendCode } from '../auth/code-email.ts'
import { type Config, readConfig } from '../config.ts'
import { createContext } from '../context.ts'
import { migrate } from '../db/migrate.ts'
import { isUnreachable } from '../db/sql.ts'
import { startWorker } from '../jobs/queue.ts'
import { createLog } from '../log.ts'
import { announce } from './announce.ts'
import { find } from './find.ts'

/** "SIGTERM: stop accepting, finish what runs, close, within 10 s." A little is left for the closing itself. */
const PATIENCE_MS = 9_000

/** `courtside serve`: runs until SIGTERM or SIGINT. */
export async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({ args, options: { help: { type: 'boolean' } } })
  if (values.help)
    return console.log('Usage: npm run courtside -- serve\n\nRuns the service; settings come from the environment.')
  const config = readConfig(process.env)
  const log = createLog(config.logLevel)
  const stopped = stopSignal()
  // What was opened, newest last; closed in reverse, whatever happens in between.
  const opened: (() => Promise<unknown>)[] = []
  try {
    await open(config, log, opened)
    await stopped
    log.info('stopping')
  } finally {
    const late = setTimeout(() => process.exit(1), PATIENCE_MS).unref()
    for (const close of opened.reverse()) await close().catch(error => log.error({ err: error }, 'could not close'))
    clearTimeout(late)
  }
  log.info('stopped')
}

async function open(config: Config, log: Logger, opened: (() => Promise<unknown>)[]): Promise<void> {
  const found = await find(config, log)
  opened.push(found.close)
  await migrated(found.databaseUrl, log)
  const ctx = createContext(config, log, found)
  opened.push(ctx.close)
  if (config.works) {
    const worker = await startWorker(found.databaseUrl, { send_code: sendCode(ctx) }, { log })
    opened.push(worker.stop)
  }
  const app = await createApp(ctx)
  opened.push(() => app.close())
  const address = await app.listen({ host: config.host, port: config.port })
  announce(log, config, address, found.intakeKeyPath)
}

/** Brings the schema up to date; a database that is still starting is waited for. */
async function migrated(databaseUrl: string, log: Logger): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const applied = await migrate(databaseUrl)
      if (applied.length > 0) log.info({ applied }, 'migrated')
      return
    } catch (error) {
      if (!isUnreachable(error) || attempt >= 30) throw error
      log.warn({ attempt }, 'the database cannot be reached yet')
      await new Promise(resolve => setTimeout(resolve, 1_000))
    }
  }
}

/** Resolves at the first SIGTERM or SIGINT; a second one ends the process at once. */
function stopSignal(): Promise<unknown> {
  const first = Promise.race(['SIGTERM', 'SIGINT'].map(signal => once(process, signal)))
  first.then(() => {
    for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => process.exit(1))
  })
  return first
}
