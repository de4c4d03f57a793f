import { once } from 'node:events'
import { readConfig } from '../config.ts'
import { createLog } from '../log.ts'
import { resolveDatabase } from './resolve-database.ts'
import { showAddresses } from './show-addresses.ts'
import { readArguments } from './usage.ts'

/** The service must stop within 10 s after SIGTERM. A limit of 9 s leaves one second for the exit itself. */
const CLOSE_TIMEOUT_MS = 9_000

/** `courtside serve`: runs until SIGTERM or SIGINT. */
export async function run(args: string[]): Promise<void> {
  if (!readArguments(args, 'serve', 'Runs the service. Settings come from the environment.')) return
  const config = readConfig(process.env)
  const log = await createLog(config.logLevel)
  const stopRequested = waitForStopSignal()
  // Each step of the startup adds functions that undo the step. The `finally` block below calls all these functions in
  // reverse order.
  const closers: (() => Promise<unknown>)[] = []
  try {
    // Loading the service's code blocks the event loop. So this process loads the code while it has nothing to do
    // except wait for the database.
    const waiting = Promise.withResolvers<void>()
    const [{ intakeKeyPath, ...bootstrap }, { openService }] = await Promise.all([
      resolveDatabase(config, log, closers, waiting.resolve),
      waiting.promise.then(() => import('../service.ts')),
    ])
    const address = await openService(config, log, bootstrap, closers)
    showAddresses(log, config, address, intakeKeyPath)
    await stopRequested
    log.info('stopping')
  } finally {
    const closeTimer = exitAfterTimeout()
    for (const close of closers.reverse()) await close().catch(error => log.error({ err: error }, 'could not close'))
    clearTimeout(closeTimer)
  }
  log.info('stopped')
}

/** Ends the process with the exit code 1 if it still runs after CLOSE_TIMEOUT_MS. */
function exitAfterTimeout(): NodeJS.Timeout {
  return setTimeout(() => process.exit(1), CLOSE_TIMEOUT_MS).unref()
}

/**
 * Resolves at the first SIGTERM or SIGINT. A second signal ends the process at once. The first signal also starts the
 * time limit of `exitAfterTimeout`. This time limit ends even a process that is still starting, for example a process
 * that waits for a database or for another process's migration.
 */
function waitForStopSignal(): Promise<unknown> {
  const first = Promise.race(['SIGTERM', 'SIGINT'].map(signal => once(process, signal)))
  first.then(() => {
    exitAfterTimeout()
    for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => process.exit(1))
  })
  return first
}
