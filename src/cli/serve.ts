import { once } from 'node:events'
import { readConfig } from '../config.ts'
import { createLog } from '../log.ts'
import { showAddresses } from './announce.ts'
import { resolveDatabase } from './resolve-database.ts'
import { readArguments } from './usage.ts'

/** "SIGTERM: stop accepting, finish what runs, close, within 10 s." A little is left for the closing itself. */
const PATIENCE_MS = 9_000

/** `courtside serve`: runs until SIGTERM or SIGINT. */
export async function run(args: string[]): Promise<void> {
  if (!readArguments(args, 'serve', 'Runs the service; settings come from the environment.')) return
  const config = readConfig(process.env)
  const log = await createLog(config.logLevel)
  const stopped = stopSignal()
  // What was opened, newest last; closed in reverse, whatever happens in between.
  const opened: (() => Promise<unknown>)[] = []
  try {
    // The code of the service is read while the database starts, and not before: reading it leaves no time for anything else.
    const running = Promise.withResolvers<void>()
    const [found, { openService }] = await Promise.all([
      resolveDatabase(config, log, opened, running.resolve),
      running.promise.then(() => import('../service.ts')),
    ])
    const address = await openService(config, log, found, opened)
    showAddresses(log, config, address, found.intakeKeyPath)
    await stopped
    log.info('stopping')
  } finally {
    const late = endLate()
    for (const close of opened.reverse()) await close().catch(error => log.error({ err: error }, 'could not close'))
    clearTimeout(late)
  }
  log.info('stopped')
}

/** Ends the process, should it still run then. */
function endLate(): NodeJS.Timeout {
  return setTimeout(() => process.exit(1), PATIENCE_MS).unref()
}

/**
 * Resolves at the first SIGTERM or SIGINT; a second one ends the process at once. The first ends it in time too while it is still
 * starting, and waits for a database or for another process's migration.
 */
function stopSignal(): Promise<unknown> {
  const first = Promise.race(['SIGTERM', 'SIGINT'].map(signal => once(process, signal)))
  first.then(() => {
    endLate()
    for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => process.exit(1))
  })
  return first
}
